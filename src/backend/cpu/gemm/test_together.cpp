// Several products as one piece of work: the same bits as one after the other, on every path.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/together.h"
#include "backend/cpu/threads.h"
#include "heddle/dtype.h"

namespace heddle::cpu {
namespace {

// Memory of one cache line after the other.
class Lines {
 public:
  explicit Lines(std::size_t bytes) : lines_(bytes / 64 + 1) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(lines_.data());
  }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> lines_;
};

constexpr std::int64_t kRows = 300, kIn = 70, kOut = 130;

// The three products of a linear layer's backward pass, and one more weight's: dx = dy · W,
// dW = dyᵀ · x twice, with the same x to pack, and y += dy · W. Then one with another B.
struct Backward {
  Lines x{kRows * kIn * 2}, dy{kRows * kOut * 2}, w{kOut * kIn * 4};
  Lines packed_w, packed_x, packed_dy, dx{kRows * kIn * 2}, y{kRows * kIn * 2};
  Lines dw{kOut * kIn * 4}, other{kOut * kIn * 4}, third{kOut * kIn * 4};
  std::vector<GemmJob> jobs;

  explicit Backward(const GemmPath& path)
      : packed_w(path.packed_bytes(kOut, kIn)),
        packed_x(path.packed_bytes(kRows, kIn)),
        packed_dy(path.packed_bytes(kRows, kIn)) {
    const auto value = [](std::int64_t i) { return static_cast<float>((i * 37) % 101 - 50) / 64; };
    for (std::int64_t i = 0; i < kRows * kIn; ++i) {
      x.as<bf16>()[i] = bf16::from_float(value(i));
      y.as<bf16>()[i] = bf16::from_float(value(i + 3));
    }
    for (std::int64_t i = 0; i < kRows * kOut; ++i)
      dy.as<bf16>()[i] = bf16::from_float(value(i + 1));
    for (std::int64_t i = 0; i < kOut * kIn; ++i) w.as<float>()[i] = value(i + 2);
    path.pack_b(kOut, kIn, {w.as<float>(), DType::f32, kIn, 1}, packed_w.as<char>());
    jobs = {input_gradient(dx), weight_gradient(dw), weight_gradient(other), input_gradient(y),
            weight_gradient(third)};
    jobs[3].epilogue.residual = jobs[3].c;
    jobs[3].epilogue.residual_stride = kIn;
    jobs[4].b = {dy.as<bf16>(), DType::bf16, kOut, 1};
    jobs[4].room_for_b = packed_dy.as<char>();
    std::swap(jobs[3], jobs[4]);  // those with the same shape of B one after another
  }

  GemmJob input_gradient(Lines& c) {
    GemmJob job;
    job.m = kRows, job.n = kIn, job.k = kOut;
    job.a = {dy.as<bf16>(), DType::bf16, kOut, 1};
    job.packed_b = packed_w.as<char>();
    job.c = c.as<bf16>();
    job.c_dtype = DType::bf16;
    job.c_row_stride = kIn;
    return job;
  }

  GemmJob weight_gradient(Lines& c) {
    GemmJob job;
    job.m = kOut, job.n = kIn, job.k = kRows;
    job.a = {dy.as<bf16>(), DType::bf16, 1, kOut};
    job.b = {x.as<bf16>(), DType::bf16, kIn, 1};
    job.room_for_b = packed_x.as<char>();
    job.c = c.as<float>();
    job.c_row_stride = kIn;
    return job;
  }

  std::vector<float> results() {
    std::vector<float> all;
    for (Lines* c : {&dx, &y})
      for (std::int64_t i = 0; i < kRows * kIn; ++i) all.push_back(c->as<bf16>()[i].to_float());
    for (Lines* c : {&dw, &other, &third})
      all.insert(all.end(), c->as<float>(), c->as<float>() + kOut * kIn);
    return all;
  }
};

std::vector<const GemmPath*> bf16_paths() {
  std::vector<const GemmPath*> paths;
  for (const Isa isa : available_isas()) paths.push_back(&gemm_path(isa, DType::bf16));
  if constexpr (kHasTiles)
    if (available_isas().back() >= Isa::avx512_bf16) paths.push_back(&amx_bf16_path_emulated());
  return paths;
}

TEST(GemmTogether, TheSameBitsAsOneByOne) {
  const int threads = thread_count();
  for (const GemmPath* path : bf16_paths()) {
    Backward alone(*path);
    for (const GemmJob& job : alone.jobs) path->run(job);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      Backward together(*path);
      path->run_all(together.jobs, nullptr);
      EXPECT_EQ(together.results(), alone.results()) << count << " threads";
    }
  }
  set_threads(threads);
}

// y += dy · W four times, along with other products that are cut into other numbers of chunks.
TEST(GemmTogether, OneMayAddToAnother) {
  const int threads = thread_count();
  const auto chain = [](Backward& b) {
    const GemmJob add = b.jobs.back();
    b.jobs.insert(b.jobs.end(), 3, add);
  };
  for (const GemmPath* path : bf16_paths()) {
    Backward alone(*path);
    chain(alone);
    for (const GemmJob& job : alone.jobs) path->run(job);
    for (const int count : {1, 2, 3, 8}) {
      set_threads(count);
      Backward together(*path);
      chain(together);
      path->run_all(together.jobs, nullptr);
      EXPECT_EQ(together.results(), alone.results()) << count << " threads";
    }
  }
  set_threads(threads);
}

// Two that add to the same C, of which one has a transposed A: large enough to be cut otherwise.
TEST(GemmTogether, OneThatIsCutOtherwiseWaits) {
  constexpr std::int64_t n = 384;
  const int threads = thread_count();
  for (const GemmPath* path : bf16_paths()) {
    Lines a(n * n * 2), packed(path->packed_bytes(n, n)), c(n * n * 2);
    for (std::int64_t i = 0; i < n * n; ++i)
      a.as<bf16>()[i] = bf16::from_float(static_cast<float>(i * 37 % 101 - 50) / 64);
    path->pack_b(n, n, {a.as<bf16>(), DType::bf16, n, 1}, packed.as<char>());
    GemmJob job;
    job.m = job.n = job.k = job.c_row_stride = job.epilogue.residual_stride = n;
    job.a = {a.as<bf16>(), DType::bf16, n, 1};
    job.packed_b = packed.as<char>();
    job.c = c.as<bf16>();
    job.c_dtype = DType::bf16;
    std::vector<GemmJob> jobs = {job, job, job};
    jobs[1].a = {a.as<bf16>(), DType::bf16, 1, n};
    jobs[1].epilogue.residual = jobs[2].epilogue.residual = c.as<bf16>();
    const auto result = [&] { return std::vector<char>(c.as<char>(), c.as<char>() + n * n * 2); };
    for (const GemmJob& one : jobs) path->run(one);
    const std::vector<char> want = result();
    for (const int count : {1, 2}) {
      set_threads(count);
      path->run_all(jobs, nullptr);
      EXPECT_EQ(result(), want);
    }
  }
  set_threads(threads);
}

TEST(GemmTogether, OtherWorkBeside) {
  const int threads = thread_count();
  for (const GemmPath* path : bf16_paths())
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      for (const std::int64_t chunks : {0, 1, 5, 100}) {
        Backward alone(*path), together(*path);
        path->run_all(alone.jobs, nullptr);
        std::vector<std::atomic<int>> calls(static_cast<std::size_t>(chunks));
        const auto work = [&](std::int64_t c) { ++calls[static_cast<std::size_t>(c)]; };
        const OtherWork other{chunks, work};
        path->run_all(together.jobs, &other);
        EXPECT_EQ(together.results(), alone.results());
        for (const auto& n : calls) EXPECT_EQ(n, 1);
      }
    }
  set_threads(threads);
}

TEST(GemmTogether, NothingToDo) {
  for (const GemmPath* path : bf16_paths()) {
    path->run_all({}, nullptr);
    Backward b(*path);
    b.jobs.resize(2);
    b.jobs[0].m = 0;
    path->run_all(b.jobs, nullptr);
    const float* dw = b.dw.as<float>();
    EXPECT_TRUE(std::any_of(dw, dw + kOut * kIn, [](float v) { return v != 0; }));
  }
}

TEST(GemmTogether, MoreThanShareAPieceOfWork) {
  for (const GemmPath* path : bf16_paths()) {
    Backward alone(*path), together(*path);
    std::vector<GemmJob> jobs(kTogether - 2, together.jobs[0]);
    jobs.insert(jobs.end(), together.jobs.begin(), together.jobs.end());
    for (const GemmJob& job : alone.jobs) path->run(job);
    path->run_all(jobs, nullptr);
    EXPECT_EQ(together.results(), alone.results());
  }
}

TEST(GemmTogether, EveryPieceHasTheSamePartOfEachProduct) {
  const int threads = thread_count();
  set_threads(1);  // pieces in their order
  const std::int64_t chunks[] = {2, 8, 0, 4};
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  run_together(chunks, 4, nullptr,
               [&](std::int64_t i, std::int64_t c) { seen.emplace_back(i, c); });
  set_threads(threads);
  ASSERT_EQ(seen.size(), 14u);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto [product, chunk] = seen[i];
    EXPECT_EQ(chunk >= chunks[product] / 2, i >= 7) << i;
  }
  std::ranges::sort(seen);
  EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end());
}

}  // namespace
}  // namespace heddle::cpu
