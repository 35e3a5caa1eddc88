// Memory bandwidth. Vectors of 16 bytes are enough: memory, not the width of a register, is the
// limit.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/probe/probe.h"
#include "backend/cpu/threads.h"
#include "base/process_memory.h"
#include "base/system/pages.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostArrays = 8;
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;  // of every array, per chunk

// Pages of their own: what goes through the heap may stay in it.
class Arrays {
 public:
  explicit Arrays(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    std::byte* const pages = map_pages(bytes_);
    if (pages == nullptr) return;
    want_huge_pages(pages, bytes_);
    start_ = reinterpret_cast<float*>(pages);
    std::fill_n(start_, bytes_ / sizeof(float), 1.0f);
  }
  ~Arrays() {
    if (start_ != nullptr) unmap_pages(reinterpret_cast<std::byte*>(start_), bytes_);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  float* start() const { return start_; }  // null: the system refused

 private:
  std::size_t bytes_;
  float* start_ = nullptr;
};

// Of each of so many arrays; 0 where memory is short.
std::int64_t bytes_of_array(int arrays, const ProbeMemory& memory) {
  const std::int64_t all = std::min(memory.most, memory_limits().available / 2);
  return all < memory.least ? 0 : all / arrays / kPieceBytes * kPieceBytes;
}

struct Streams {
  const float* reads[kMostArrays];
  float* writes[kMostArrays];
};

enum class Stores { ordinary, non_temporal };
// Elsewhere caches find out by themselves that what is written is not read.
constexpr bool kHasNonTemporal = kArchitecture == Architecture::x86_64;

typedef float Quad __attribute__((vector_size(16), may_alias));

void store_past_caches(float* to, Quad v) {
#if defined(__x86_64__)
  _mm_stream_ps(to, v);
#else
  *reinterpret_cast<Quad*>(to) = v;
#endif
}
void end_of_stream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// One cache line of every array at a time. The counts are template arguments: a loop over arrays
// inside the loop over lines would be what is measured.
template <int Reads, int Writes, Stores kStores>
void move_piece(const Streams& s, std::int64_t begin, std::int64_t end, float* result) noexcept {
  Quad sums[4] = {};
  for (std::int64_t i = begin; i < end; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const auto read = [&](int r) {
        return *reinterpret_cast<const Quad*>(s.reads[r] + i + 4 * part);
      };
      Quad v = sums[part];
      for (int r = 0; r < Reads; ++r) v = r == 0 && Writes > 0 ? read(r) : v + read(r);
      if constexpr (Writes == 0) sums[part] = v;
      for (int w = 0; w < Writes; ++w) {
        float* const to = s.writes[w] + i + 4 * part;
        if constexpr (kStores == Stores::ordinary) {
          *reinterpret_cast<Quad*>(to) = v;
        } else {
          store_past_caches(to, v);
        }
      }
    }
  }
  if constexpr (kStores == Stores::non_temporal) end_of_stream();
  const Quad sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  *result = sum[0];
}

using Piece = void (*)(const Streams&, std::int64_t, std::int64_t, float*) noexcept;

struct PieceTable {
  Piece at[kMostArrays + 1][kMostArrays + 1];
};

template <Stores kStores, int Index>
constexpr void fill_entry(PieceTable& table) {
  constexpr int kReads = Index / (kMostArrays + 1), kWrites = Index % (kMostArrays + 1);
  table.at[kReads][kWrites] = move_piece<kReads, kWrites, kStores>;
}

template <Stores kStores, int... Index>
constexpr PieceTable make_table(std::integer_sequence<int, Index...>) {
  PieceTable table{};
  (fill_entry<kStores, Index>(table), ...);
  return table;
}

using Everything = std::make_integer_sequence<int, (kMostArrays + 1) * (kMostArrays + 1)>;
constexpr PieceTable kOrdinary = make_table<Stores::ordinary>(Everything{});
constexpr PieceTable kNonTemporal = make_table<Stores::non_temporal>(Everything{});

// Walks over all arrays until the time is up; the median of the walks.
double measure(const Streams& streams, Piece piece, std::int64_t array_bytes, int arrays,
               double seconds) {
  const std::int64_t pieces = array_bytes / kPieceBytes;
  std::vector<float> results(static_cast<std::size_t>(pieces));
  std::vector<double> rates;
  const auto start = Clock::now();
  do {
    const auto walk = Clock::now();
    parallel_chunks(pieces, [&](std::int64_t i) {
      constexpr std::int64_t kFloats = kPieceBytes / 4;
      piece(streams, i * kFloats, (i + 1) * kFloats, &results[static_cast<std::size_t>(i)]);
    });
    const double took = std::chrono::duration<double>(Clock::now() - walk).count();
    rates.push_back(static_cast<double>(array_bytes) * arrays / took);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2),
                   rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

std::optional<double> stream_bandwidth(int read_arrays, int write_arrays, double seconds,
                                       const ProbeMemory& memory) {
  const auto in_range = [](int n) { return n >= 0 && n <= kMostArrays; };
  const int arrays = read_arrays + write_arrays;
  if (!in_range(read_arrays) || !in_range(write_arrays) || arrays == 0)
    fail(ErrorCode::invalid_argument, "stream_bandwidth", "number of arrays",
         "0 to 8 of each and at least one",
         std::to_string(read_arrays) + " and " + std::to_string(write_arrays));
  const std::int64_t array_bytes = bytes_of_array(arrays, memory);
  if (array_bytes == 0) return std::nullopt;
  const Arrays all(arrays * array_bytes);
  if (all.start() == nullptr) return std::nullopt;
  const auto array = [&](int i) { return all.start() + i * (array_bytes / 4); };
  Streams streams{};
  for (int i = 0; i < read_arrays; ++i) streams.reads[i] = array(i);
  for (int i = 0; i < write_arrays; ++i) streams.writes[i] = array(read_arrays + i);

  const Piece ordinary = kOrdinary.at[read_arrays][write_arrays];
  if (write_arrays == 0 || !kHasNonTemporal)
    return measure(streams, ordinary, array_bytes, arrays, seconds);
  const Piece non_temporal = kNonTemporal.at[read_arrays][write_arrays];
  return std::max(measure(streams, ordinary, array_bytes, arrays, seconds / 2),
                  measure(streams, non_temporal, array_bytes, arrays, seconds / 2));
}

std::optional<double> read_bandwidth(double seconds, const ProbeMemory& memory) {
  return stream_bandwidth(1, 0, seconds, memory);
}

}  // namespace heddle::cpu
