// The AMX product on emulated tiles (and on real ones where there are any) against float64, with
// every array ending at a page that faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/guarded_buffer.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/amx/split_k.h"
#include "backend/cpu/gemm/test_slope.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"

namespace heddle::cpu {
namespace {

using amx::GuardedBuffer;

bool machine_has(Isa isa) {
  const auto& all = available_isas();
  return std::find(all.begin(), all.end(), isa) != all.end();
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761u + 1) {}
  double next() {  // in [-1, 1)
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 23) - 1.0;
  }

 private:
  std::uint64_t state_;
};

enum class Layout { rows, padded_rows, columns, padded_columns, strided };

// A matrix of the type and layout asked for in memory that ends right after its last element, and
// the same values, rounded to bf16, as doubles.
struct TestMatrix {
  MatrixRef ref;
  std::int64_t batch_stride = 0;
  std::unique_ptr<GuardedBuffer> memory;
  std::vector<double> values;  // [batch, rows, cols]

  TestMatrix(std::int64_t batch, std::int64_t rows, std::int64_t cols, Layout layout, DType dtype,
             Random& random) {
    const std::int64_t pad = layout == Layout::rows || layout == Layout::columns ? 0 : 3;
    const bool by_column = layout == Layout::columns || layout == Layout::padded_columns;
    const std::int64_t element = layout == Layout::strided ? 2 : 1;
    ref.row_stride = by_column ? 1 : cols * element + pad;
    ref.col_stride = by_column ? rows + pad : element;
    ref.dtype = dtype;
    batch_stride = (by_column ? cols * ref.col_stride : rows * ref.row_stride) + 5;
    std::int64_t extent = 0;
    if (batch * rows * cols > 0)
      extent = (batch - 1) * batch_stride + (rows - 1) * ref.row_stride +
               (cols - 1) * ref.col_stride + 1;
    memory = std::make_unique<GuardedBuffer>(static_cast<std::size_t>(extent) * size_of(dtype));
    ref.data = memory->as<void>();
    // Bytes between the elements must not matter.
    std::memset(memory->as<char>(), 0xff, memory->bytes());
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto f = static_cast<float>(random.next());
          const bf16 rounded = bf16::from_float(f);
          const std::int64_t at = b * batch_stride + r * ref.row_stride + c * ref.col_stride;
          if (dtype == DType::bf16) memory->as<bf16>()[at] = rounded;
          if (dtype == DType::f32) memory->as<float>()[at] = f;
          if (dtype == DType::f64) memory->as<double>()[at] = f;
          values.push_back(rounded.to_float());
        }
  }
};

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::gelu: return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::gelu_tanh:  // x / 2 (1 + tanh u), written without the cancellation at x << 0
      return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1.0 + std::exp(-x));
  }
  return x;
}

struct Case {
  std::int64_t m, n, k, batch = 1;
  Layout a = Layout::rows, b = Layout::rows;
  DType b_dtype = DType::bf16, c_dtype = DType::f32;
  bool bias = false, derivative = false, residual = false, accumulate = false;
  bool factor = false;
  Activation activation = Activation::none;
  bool shared_b = false;
  std::int64_t c_pad = 0;

  std::string name() const {
    return std::to_string(batch) + " x " + std::to_string(m) + " x " + std::to_string(n) + " x " +
           std::to_string(k) + ", A layout " + std::to_string(static_cast<int>(a)) + ", B layout " +
           std::to_string(static_cast<int>(b)) + " in " + std::string(to_string(b_dtype)) +
           ", C in " + std::string(to_string(c_dtype)) + ", bias " + std::to_string(bias) +
           ", derivative " + std::to_string(derivative) + ", residual " + std::to_string(residual) +
           ", factor " + std::to_string(factor) + ", accumulate " + std::to_string(accumulate) +
           ", activation " + std::to_string(static_cast<int>(activation));
  }
};

// A [batch, m, n] array in the type of C with padded rows.
struct Output {
  DType dtype;
  std::int64_t m, n, row_stride, batch_stride;
  GuardedBuffer memory;

  Output(const Case& c, std::int64_t pad)
      : dtype(c.c_dtype),
        m(c.m),
        n(c.n),
        row_stride(c.n + pad),
        batch_stride(c.m * row_stride + pad),
        memory(bytes(c, pad)) {}
  static std::size_t bytes(const Case& c, std::int64_t pad) {
    if (c.batch * c.m * c.n == 0) return 0;
    const std::int64_t stride = c.n + pad;
    const std::int64_t last = (c.batch - 1) * (c.m * stride + pad) + (c.m - 1) * stride + c.n;
    return static_cast<std::size_t>(last) * size_of(c.c_dtype);
  }
  void fill(Random& random) {
    for (std::size_t i = 0; i < memory.bytes() / size_of(dtype); ++i) {
      const auto f = static_cast<float>(random.next());
      if (dtype == DType::bf16)
        memory.as<bf16>()[i] = bf16::from_float(f);
      else
        memory.as<float>()[i] = f;
    }
  }
  double at(std::int64_t offset) {
    return dtype == DType::bf16 ? memory.as<bf16>()[offset].to_float() : memory.as<float>()[offset];
  }
};

class Fixture {
 public:
  explicit Fixture(const Case& c)
      : case_(c),
        random_(static_cast<std::uint64_t>(c.m * 131 + c.n * 17 + c.k)),
        a_(c.batch, c.m, c.k, c.a, DType::bf16, random_),
        b_(c.shared_b ? 1 : c.batch, c.k, c.n, c.b, c.b_dtype, random_),
        bias_(static_cast<std::size_t>(c.n) * 4),
        factor_(c, c.c_pad),
        residual_(c, c.c_pad == 0 ? 0 : c.c_pad + 2) {
    for (std::int64_t i = 0; i < c.n; ++i)
      bias_.as<float>()[i] = static_cast<float>(4.0 * random_.next());
    factor_.fill(random_);
    residual_.fill(random_);
    // Batches of the residual advance as C does, whatever its own row stride is.
  }

  // The bytes of C and of the slopes, for comparison.
  std::vector<char> run(const GemmPath& path, bool check, bool give_packed_b = true) {
    const Case& c = case_;
    const std::size_t one_b = path.packed_bytes(c.k, c.n);
    EXPECT_EQ(one_b % 64, 0u);
    const std::int64_t b_count = c.shared_b ? 1 : c.batch;
    GuardedBuffer packed(one_b * static_cast<std::size_t>(b_count));
    for (std::int64_t i = 0; i < b_count && give_packed_b; ++i) {
      MatrixRef b = b_.ref;
      b.data = static_cast<const char*>(b.data) +
               static_cast<std::size_t>(i * b_.batch_stride) * size_of(c.b_dtype);
      path.pack_b(c.k, c.n, b, packed.as<char>() + static_cast<std::size_t>(i) * one_b);
    }
    Output out(c, c.c_pad), slopes(c, c.c_pad);
    Random fill(7);
    out.fill(fill);
    slopes.fill(fill);
    const std::vector<char> before(out.memory.as<char>(),
                                   out.memory.as<char>() + out.memory.bytes());

    GemmJob job;
    job.m = c.m, job.n = c.n, job.k = c.k, job.batch = c.batch;
    job.a = a_.ref;
    job.a_batch_stride = a_.batch_stride;
    if (give_packed_b) {
      job.packed_b = packed.as<void>();
      job.b_batch_stride = c.shared_b ? 0 : static_cast<std::int64_t>(one_b);
    } else {
      job.b = b_.ref;
      job.room_for_b = packed.as<void>();
    }
    job.c = out.memory.as<void>();
    job.c_dtype = c.c_dtype;
    job.c_row_stride = out.row_stride;
    job.c_batch_stride = out.batch_stride;
    if (c.bias) job.epilogue.bias = bias_.as<float>();
    if (c.derivative) job.epilogue.derivative = slopes.memory.as<void>();
    if (c.factor) job.epilogue.factor = factor_.memory.as<void>();
    if (c.residual) job.epilogue.residual = residual_.memory.as<void>();
    job.epilogue.residual_stride = residual_row_stride();
    job.epilogue.activation = c.activation;
    job.epilogue.accumulate = c.accumulate;
    path.run(job);

    EXPECT_TRUE(out.memory.intact() && slopes.memory.intact() && packed.intact());
    EXPECT_TRUE(a_.memory->intact() && b_.memory->intact() && bias_.intact());
    if (check) {
      check_values(out, slopes, before);
      check_padding(out, before);
    }
    std::vector<char> bytes(out.memory.as<char>(), out.memory.as<char>() + out.memory.bytes());
    if (c.derivative)
      bytes.insert(bytes.end(), slopes.memory.as<char>(),
                   slopes.memory.as<char>() + slopes.memory.bytes());
    return bytes;
  }

 private:
  // With one batch the residual may have rows of its own length; with more it shares C's shape.
  std::int64_t residual_row_stride() const {
    return case_.batch == 1 ? residual_.row_stride : case_.n;
  }

  void check_values(Output& out, Output& slopes, const std::vector<char>& before) {
    const Case& c = case_;
    int shown = 0;
    for (std::int64_t b = 0; b < c.batch && shown < 3; ++b)
      for (std::int64_t i = 0; i < c.m && shown < 3; ++i)
        for (std::int64_t j = 0; j < c.n && shown < 3; ++j) {
          double sum = 0, size = 0;
          const std::int64_t row = (b * c.m + i) * c.k;
          const std::int64_t column = (c.shared_b ? 0 : b * c.k * c.n) + j;
          for (std::int64_t p = 0; p < c.k; ++p) {
            const double product = a_.values[static_cast<std::size_t>(row + p)] *
                                   b_.values[static_cast<std::size_t>(column + p * c.n)];
            sum += product;
            size += std::abs(product);
          }
          if (c.bias) sum += static_cast<double>(bias_.as<float>()[j]);
          const std::int64_t at = b * out.batch_stride + i * out.row_stride + j;
          const double slack = 1e-6 * (size + std::abs(sum)) + 1e-7;
          const double half_unit = c.c_dtype == DType::bf16 ? 1.0 / 250 : 0.0;
          // No activation's slope changes faster than 1.2 times its argument, but for relu's at 0.
          const bool jumps = c.activation == Activation::relu && std::abs(sum) <= slack;
          const double steepness = slope(c.activation, sum);
          const double narrow_error = c.c_dtype == DType::bf16 ? 0x1p-12 : 1e-6;
          const double slope_error = 1.2 * slack + half_unit * std::abs(steepness) + narrow_error;
          if (c.derivative && !jumps && !(std::abs(slopes.at(at) - steepness) <= slope_error))
            ADD_FAILURE() << c.name() << ": slope " << b << ", " << i << ", " << j, ++shown;
          double want = activate(c.activation, sum);
          // Activations on their way to bf16 are right to about 2^-13 of themselves.
          const bool narrow = c.c_dtype == DType::bf16 && c.activation != Activation::none;
          const double activation_error = narrow ? 0x1p-12 * std::abs(want) : 0;
          if (c.factor) want *= factor_.at(at);
          if (c.residual)
            want += residual_.at(b * out.batch_stride + i * residual_row_stride() + j);
          if (c.accumulate)
            want += static_cast<double>(reinterpret_cast<const float*>(before.data())[at]);
          const double got = out.at(at);
          const double error = std::abs(got - want);
          if (!(error <= 1.2 * slack + (half_unit + 2e-7) * std::abs(want) + activation_error))
            ADD_FAILURE() << c.name() << ": element " << b << ", " << i << ", " << j << " is "
                          << got << ", not " << want,
                ++shown;
        }
  }

  // Bytes between the rows of C must not be written.
  void check_padding(Output& out, const std::vector<char>& before) {
    const std::size_t element = size_of(out.dtype);
    for (std::size_t i = 0; i < before.size() / element; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t inside = at % out.batch_stride;
      if (inside / out.row_stride < out.m && inside % out.row_stride < out.n) continue;
      ASSERT_EQ(
          0, std::memcmp(out.memory.as<char>() + i * element, before.data() + i * element, element))
          << case_.name();
    }
  }

  Case case_;
  Random random_;
  TestMatrix a_, b_;
  GuardedBuffer bias_;
  Output factor_, residual_;
};

class AmxGemm : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_has(Isa::avx512_bf16)) GTEST_SKIP() << "needs AVX-512 with bf16";
    before_ = thread_count();
  }
  void TearDown() override {
    amx::tuning() = amx::Tuning{};
    if (before_ > 0) set_threads(before_);
  }

  // Blocks so small that small matrices have several of every kind.
  static amx::Tuning small_blocks() {
    amx::Tuning t;
    t.k_outer = t.k_whole = 64;
    t.k_inner = 32;
    t.m_unit = 64;
    t.n_unit = 96;
    return t;
  }

  // Right on one thread, and the same bits for every number of threads, blocking and tile policy;
  // an unpacked B may give other bits than a packed one (split_k.h).
  static void check(const Case& c, const std::vector<int>& threads = {2, 3, 8}) {
    Fixture fixture(c);
    amx::tuning() = amx::Tuning{};
    set_threads(1);
    const auto want = fixture.run(amx_bf16_path_emulated(), true);
    const bool one_b = c.batch == 1 || c.shared_b;
    const auto unpacked = one_b ? fixture.run(amx_bf16_path_emulated(), true, false) : want;
    for (const int count : threads) {
      set_threads(count);
      amx::tuning() = small_blocks();
      if (count % 2 == 0) amx::tuning().stream = amx::Choice::always;
      if (count % 4 == 0) amx::tuning().defer = false;
      if (count % 3 == 0) amx::tuning().pack_a = amx::Choice::always;
      EXPECT_EQ(want, fixture.run(amx_bf16_path_emulated(), false)) << c.name() << ", " << count;
      amx::tuning() = amx::Tuning{};
      if (threads.size() > 1) {
        EXPECT_EQ(want, fixture.run(amx_bf16_path_emulated(), false)) << c.name() << ", " << count;
      }
      if (one_b) {
        const auto as_it_lies = fixture.run(amx_bf16_path_emulated(), false, false);
        EXPECT_EQ(unpacked, as_it_lies) << c.name() << ", B as it lies, " << count;
      }
      if (machine_has(Isa::amx)) fixture.run(amx_bf16_path(), true);
      if (machine_has(Isa::amx) && one_b) fixture.run(amx_bf16_path(), true, false);
    }
  }

 private:
  int before_ = 0;
};

TEST_F(AmxGemm, Shapes) {
  const std::int64_t sizes[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 97};
  int i = 0;
  for (const auto m : sizes)
    for (const auto n : sizes)
      for (const auto k : sizes) {
        if (++i % 7 != 0 && m * n * k != 0) continue;
        Case c{.m = m, .n = n, .k = k};
        c.c_dtype = i % 2 == 0 ? DType::bf16 : DType::f32;
        c.bias = i % 3 == 0;
        c.c_pad = i % 5;
        check(c, {i % 2 == 0 ? 2 : 3});
      }
}

TEST_F(AmxGemm, Layouts) {
  const Layout layouts[] = {Layout::rows, Layout::padded_rows, Layout::columns,
                            Layout::padded_columns, Layout::strided};
  for (const Layout a : layouts)
    for (const Layout b : layouts)
      for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
        check({.m = 96, .n = 64, .k = 160, .a = a, .b = b, .b_dtype = dtype}, {2});
        check({.m = 71, .n = 133, .k = 75, .a = a, .b = b, .b_dtype = dtype}, {3});
      }
}

TEST_F(AmxGemm, Epilogues) {
  const Activation activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                    Activation::gelu_tanh, Activation::silu};
  for (const Activation activation : activations)
    for (int bits = 0; bits < 16; ++bits)
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Case c{.m = 67, .n = 80, .k = 96};
        c.activation = activation;
        c.c_dtype = dtype;
        c.bias = (bits & 1) != 0;
        c.derivative = (bits & 2) != 0;
        c.residual = (bits & 4) != 0;
        c.accumulate = (bits & 8) != 0 && dtype == DType::f32;
        c.factor = (bits + static_cast<int>(activation)) % 2 == 0;
        c.c_pad = bits % 3 == 0 ? 0 : 16;
        check(c, {bits % 2 == 0 ? 2 : 3});
        c.k = 0;
        check(c, {2});
      }
}

TEST_F(AmxGemm, Batches) {
  for (const bool shared : {false, true}) {
    Case c{.m = 33, .n = 40, .k = 70, .batch = 7, .residual = true};
    c.shared_b = shared;
    check(c);
    c.a = Layout::columns;
    c.c_dtype = DType::bf16;
    c.bias = c.derivative = c.factor = true;
    check(c);
  }
  check({.m = 3, .n = 5, .k = 9, .batch = 100});
}

TEST_F(AmxGemm, Threads) {
  check({.m = 200, .n = 330, .k = 300, .bias = true, .activation = Activation::gelu});
  check({.m = 256, .n = 192, .k = 256, .c_dtype = DType::bf16});
  check({.m = 160, .n = 130, .k = 1100, .a = Layout::columns, .accumulate = true});
}

// short_kernel.h, which check() compares with the other kernel: that runs the small blocks.
TEST_F(AmxGemm, ShortK) {
  for (const std::int64_t k : {64, 96, 128, 512})
    for (const DType c_dtype : {DType::bf16, DType::f32})
      for (const bool bias : {false, true})
        for (const bool residual : {false, true}) {
          Case c{.m = 160, .n = 96, .k = k};
          c.c_dtype = c_dtype;
          c.bias = bias;
          c.residual = residual;
          c.factor = bias != residual;
          c.c_pad = bias ? 5 : 0;
          c.batch = residual ? 2 : 1;
          check(c, {2, 3});
        }
  check({.m = 64, .n = 1024, .k = 512});  // so large a B that columns are shared out, too
}

GemmJob job_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmJob job;
  job.m = m, job.n = n, job.k = k;
  return job;
}

// Sums of two halves of K, which end in the middle of a block, in rows of C that do not touch.
TEST_F(AmxGemm, Halves) {
  for (const std::int64_t k : {257, 300, 800})
    for (const DType b_dtype : {DType::bf16, DType::f32})
      for (const bool accumulate : {false, true}) {
        Case c{.m = 70, .n = 50, .k = k, .a = Layout::columns};
        c.b_dtype = b_dtype;
        c.accumulate = accumulate;
        c.c_pad = 3;
        EXPECT_TRUE(amx::sums_in_halves(job_of(c.m, c.n, c.k)));
        check(c);
      }
  GemmJob job = job_of(128, 128, 768);
  EXPECT_TRUE(amx::sums_in_halves(job));
  job.epilogue.activation = Activation::relu;  // not of half a sum
  EXPECT_FALSE(amx::sums_in_halves(job));
  job.epilogue.activation = Activation::none;
  job.c_dtype = DType::bf16;
  EXPECT_FALSE(amx::sums_in_halves(job));
  EXPECT_FALSE(amx::sums_in_halves(job_of(160, 160, 256)));  // more to add than is saved
}

// Whoever comes second adds; if neither knew of the other, the one that ends last.
TEST(AmxMeeting, OneOfTwoAdds) {
  using amx::Half;
  for (const Half early : {Half::first, Half::second}) {
    const Half late = early == Half::first ? Half::second : Half::first;
    amx::Meeting m;
    EXPECT_FALSE(m.other_is_there(early, 3));
    EXPECT_FALSE(m.other_is_there(late, 3));  // both compute
    EXPECT_FALSE(m.arrive(early, 3));
    EXPECT_FALSE(m.other_is_there(late, 2));  // pieces are on their own
    EXPECT_TRUE(m.other_is_there(late, 3));
    EXPECT_TRUE(m.arrive(late, 3));
  }
}

// Runs another chunk between the question whether the other half is there and the computation.
amx::HalvedProduct* interrupted = nullptr;
std::int64_t interrupting = 0;
void run_interrupted(const amx::Plan& plan, std::int64_t chunk) noexcept {
  if (amx::HalvedProduct* const product = std::exchange(interrupted, nullptr))
    product->run(interrupting, amx::run_chunk_emulated);
  amx::run_chunk_emulated(plan, chunk);
}

// Two halves whose sums are small, but their own sum too small for a normal number.
void fill_far_down(std::vector<bf16>& a, std::vector<bf16>& b, std::int64_t m) {
  for (bf16& x : a) x = bf16::from_float(0);
  for (std::int64_t i = 0; i < m; ++i) {
    a[static_cast<std::size_t>(i)] = bf16::from_float(1.5f);              // k = 0
    a[static_cast<std::size_t>(500 * m + i)] = bf16::from_float(-1.25f);  // k = 500
  }
  for (bf16& x : b) x = bf16::from_float(0x1p-126f);
}

// Chunks in every order, and with the two halves of a piece at the same time, give the same bits.
TEST_F(AmxGemm, HalvesInAnyOrder) {
  constexpr std::int64_t m = 70, n = 50, k = 800;
  std::vector<bf16> a(m * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = bf16::from_float(float(i * 37 % 101) / 64 - 1);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = bf16::from_float(float(i * 53 % 97) / 64 - 1);
  GemmJob job = job_of(m, n, k);
  job.a = {a.data(), DType::bf16, 1, m};
  job.b = {b.data(), DType::bf16, n, 1};
  job.c_row_stride = n;
  std::vector<float> sums(m * n);
  for (const int way : {0, 1, 2}) {
    job.epilogue.accumulate = way == 1;
    if (way == 2) fill_far_down(a, b, m);
    const auto result = [&](const std::vector<std::int64_t>& chunks, bool at_once) {
      std::vector<float> c(m * n, 0.3f);
      job.c = c.data();
      amx::HalvedProduct product(job, sums.data(), 2);
      EXPECT_EQ(product.chunks(), 4);
      if (at_once) interrupting = 3 - chunks[0], interrupted = &product;
      parallel_chunks(1, [&](std::int64_t) {
        for (const std::int64_t chunk : chunks) product.run(chunk, run_interrupted);
      });
      return c;
    };
    std::vector<std::int64_t> chunks{0, 1, 2, 3};
    const std::vector<float> want = result(chunks, false);
    while (std::next_permutation(chunks.begin(), chunks.end()))
      EXPECT_EQ(result(chunks, false), want) << chunks[0] << chunks[1] << chunks[2];
    EXPECT_EQ(result({0, 1, 2}, true), want);
    EXPECT_EQ(result({3, 1, 2}, true), want);
  }
}

// The activations on their own: one column of A times one row of B gives any sum exactly.
TEST_F(AmxGemm, ActivationsAreAccurateEverywhere) {
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::relu}) {
    const std::int64_t m = 512;
    std::vector<bf16> a(m);
    for (std::int64_t i = 0; i < m; ++i)
      a[static_cast<std::size_t>(i)] = bf16::from_float(static_cast<float>(i - 256) / 24.0f);
    const bf16 one = bf16::from_float(1.0f);
    const GemmPath& path = amx_bf16_path_emulated();
    alignas(64) unsigned char packed[2048];
    ASSERT_EQ(sizeof(packed), path.packed_bytes(1, 1));
    path.pack_b(1, 1, {&one, DType::bf16, 1, 1}, packed);
    std::vector<float> c(m);
    GemmJob job;
    job.m = m, job.n = 1, job.k = 1;
    job.a = {a.data(), DType::bf16, 1, 1};
    job.packed_b = packed;
    job.c = c.data();
    job.c_row_stride = 1;
    job.epilogue.activation = activation;
    path.run(job);
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double x = a[i].to_float();
      const double want = activate(activation, x);
      EXPECT_NEAR(c[i], want, 2e-7 * (3 + x * x) * std::abs(want) + 1e-37) << x;
    }
  }
}

// f64 that would round twice on its way through f32.
TEST_F(AmxGemm, RoundsFloat64Once) {
  const GemmPath& path = amx_bf16_path_emulated();
  const double b[2] = {1.0 + 0x1p-8, 1.0 + 0x1p-8 + 0x1p-40};
  alignas(64) char packed[4096];
  ASSERT_LE(path.packed_bytes(1, 2), sizeof packed);
  path.pack_b(1, 2, {b, DType::f64, 2, 1}, packed);
  const bf16 one = bf16::from_float(1);
  float c[2] = {};
  GemmJob job;
  job.m = 1, job.n = 2, job.k = 1;
  job.a = {&one, DType::bf16, 1, 1};
  job.packed_b = packed, job.c = c, job.c_row_stride = 2;
  path.run(job);
  EXPECT_EQ(c[0], 1.0f);
  EXPECT_EQ(c[1], 1.0f + 2 * 0x1p-8f);
}

}  // namespace
}  // namespace heddle::cpu
