// Every path of this machine against a float64 definition, on memory that ends where the operands
// end: one element too far is a segmentation fault.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/gemm/amx/split_k.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/operands.h"
#include "backend/cpu/gemm/test_slope.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"
#include "base/divide.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

// ---- memory with guards -------------------------------------------------------------------------

constexpr unsigned char kCanary = 0xa5;

// `bytes` bytes that end at a protected page, with canaries in front.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = round_up(bytes + kFront, page) + page;
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = base_ + mapped_ - page - bytes;
    std::memset(base_, kCanary, static_cast<std::size_t>(data_ - base_) + bytes);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, mapped_); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool front_intact() const {
    for (const unsigned char* p = base_; p < data_; ++p)
      if (*p != kCanary) return false;
    return true;
  }

 private:
  static constexpr std::size_t kFront = 256;
  unsigned char* base_ = nullptr;
  unsigned char* data_ = nullptr;
  std::size_t mapped_ = 0, bytes_ = 0;
};

double get(const void* data, DType t, std::int64_t i) {
  switch (t) {
    case DType::f32: return static_cast<const float*>(data)[i];
    case DType::bf16: return static_cast<const bf16*>(data)[i].to_float();
    default: return static_cast<const double*>(data)[i];
  }
}

void put(void* data, DType t, std::int64_t i, double value) {
  switch (t) {
    case DType::f32: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case DType::bf16:
      static_cast<bf16*>(data)[i] = bf16::from_float(static_cast<float>(value));
      break;
    default: static_cast<double*>(data)[i] = value;
  }
}

double rounded(double value, DType t) {
  double storage = 0;
  put(&storage, t, 0, value);
  return get(&storage, t, 0);
}

// A matrix in guarded memory: row-major, column-major, or with gaps in both directions.
enum class Order { rows, columns, gaps };

struct TestMatrix {
  TestMatrix(std::int64_t rows_, std::int64_t cols_, DType t, Order order, std::int64_t batch_,
             std::mt19937& random)
      : rows(rows_), cols(cols_), batch(batch_), dtype(t) {
    row_stride = order == Order::rows ? cols : order == Order::columns ? 1 : 3 * cols + 2;
    col_stride = order == Order::rows ? 1 : order == Order::columns ? rows : 3;
    batch_stride = order == Order::gaps ? rows * row_stride : rows * cols;
    const std::int64_t last =
        rows * cols == 0
            ? 0
            : (batch - 1) * batch_stride + (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
    memory = std::make_unique<Guarded>(static_cast<std::size_t>(last) * size_of(t));
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c)
          put(memory->data(), t, index(b, r, c), uniform(random));
  }

  std::int64_t index(std::int64_t b, std::int64_t r, std::int64_t c) const {
    return b * batch_stride + r * row_stride + c * col_stride;
  }
  double at(std::int64_t b, std::int64_t r, std::int64_t c) const {
    return get(memory->data(), dtype, index(b, r, c));
  }
  MatrixRef ref(std::int64_t b = 0) const {
    const auto offset = static_cast<std::size_t>(b * batch_stride) * size_of(dtype);
    return {static_cast<const char*>(memory->data()) + offset, dtype, row_stride, col_stride};
  }

  std::int64_t rows, cols, batch, row_stride = 0, col_stride = 0, batch_stride = 0;
  DType dtype;
  std::unique_ptr<Guarded> memory;
};

// ---- the definition -----------------------------------------------------------------------------

double apply(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh: {
      const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * u));
    }
    case Activation::silu: return x / (1 + std::exp(-x));
  }
  return x;
}

struct Case {
  std::int64_t m = 1, n = 1, k = 1;
  Order a_order = Order::rows, b_order = Order::rows;
  DType b_dtype = DType::f32, c_dtype = DType::f32;
  std::int64_t batch = 1;
  bool share_b = false, bias = false, derivative = false, residual = false, accumulate = false;
  bool factor = false;
  Activation activation = Activation::none;

  std::string name(Isa isa, Operands operand) const {
    const auto number = [](std::int64_t i) { return std::to_string(i); };
    return std::string(to_string(isa)) + " " + std::string(to_string(operand.a)) + " by " +
           std::string(to_string(operand.b)) + " " + number(m) + "x" + number(n) + "x" + number(k) +
           " orders " + number(static_cast<int>(a_order)) + number(static_cast<int>(b_order)) +
           " B " + std::string(to_string(b_dtype)) + " C " + std::string(to_string(c_dtype)) +
           " batch " + number(batch);
  }
};

double epsilon(DType t) {
  switch (t) {
    case DType::f32: return std::numeric_limits<float>::epsilon();
    case DType::bf16: return 0x1p-7;
    default: return std::numeric_limits<double>::epsilon();
  }
}

// One case in memory: runs on a path, compares with the definition.
class Trial {
 public:
  Trial(const Case& c, Isa isa, Operands operand)
      : c_(c),
        operand_(operand),
        path_(gemm_path(isa, operand)),
        random_(1),
        a_(c.m, c.k, operand.a, c.a_order, c.batch, random_),
        b_(c.k, c.n, c.b_dtype, c.b_order, c.share_b ? 1 : c.batch, random_),
        row_stride_(c.n + 3),
        out_(output()),
        before_(output()),
        slopes_(output()),
        factor_(output()),
        residual_(output()),
        bias_(static_cast<std::size_t>(c.n) * size_of(sum_type())) {
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (std::int64_t i = 0; i < c.n; ++i) put(bias_.data(), sum_type(), i, uniform(random_));
    for (std::int64_t i = 0; i < elements(); ++i) {
      put(before_->data(), c.c_dtype, i, uniform(random_));
      put(factor_->data(), c.c_dtype, i, uniform(random_));
      put(residual_->data(), c.c_dtype, i, uniform(random_));
    }
    if (elements() > 0) std::memcpy(out_->data(), before_->data(), out_->bytes());
    if (elements() > 0) std::memcpy(slopes_->data(), before_->data(), slopes_->bytes());
    pack();
  }

  void run() { path_.run(job()); }

  // The first rows alone: are they those of `all`?
  bool same_rows(std::int64_t rows, const std::vector<char>& all) {
    std::memcpy(out_->data(), before_->data(), out_->bytes());
    GemmJob few = job();
    few.m = rows;
    path_.run(few);
    const auto bytes =
        static_cast<std::size_t>((rows - 1) * row_stride_ + c_.n) * size_of(c_.c_dtype);
    return std::memcmp(out_->data(), all.data(), bytes) == 0;
  }

  // The same product with B in its own layout, not packed.
  void run_unpacked() {
    if (elements() > 0) std::memcpy(out_->data(), before_->data(), out_->bytes());
    const std::size_t bytes = path_.packed_bytes(c_.k, c_.n);
    Guarded room(bytes);
    GemmJob unpacked = job();
    unpacked.packed_b = nullptr;
    unpacked.b = b_.ref();
    unpacked.room_for_b = room.data();
    path_.run(unpacked);
    EXPECT_TRUE(room.front_intact());
  }

  std::vector<char> output_bytes() const {
    const auto* bytes = static_cast<const char*>(out_->data());
    return {bytes, bytes + out_->bytes()};
  }

  void compare(const std::string& name) const {
    SCOPED_TRACE(name);
    EXPECT_TRUE(out_->front_intact() && slopes_->front_intact() && packed_->front_intact());
    int wrong = 0;
    for (std::int64_t b = 0; b < c_.batch; ++b)
      for (std::int64_t r = 0; r < c_.m; ++r)
        for (std::int64_t j = 0; j < c_.n && wrong < 3; ++j) wrong += !element_right(b, r, j);
    EXPECT_EQ(wrong, 0);
    gaps_untouched();
  }

 private:
  DType sum_type() const { return operand_ == DType::f64 ? DType::f64 : DType::f32; }
  std::int64_t batch_stride() const { return c_.m * row_stride_ + 5; }
  std::int64_t elements() const {
    if (c_.m * c_.n == 0) return 0;
    return (c_.batch - 1) * batch_stride() + (c_.m - 1) * row_stride_ + c_.n;
  }
  std::unique_ptr<Guarded> output() const {
    return std::make_unique<Guarded>(static_cast<std::size_t>(elements()) * size_of(c_.c_dtype));
  }

  void pack() {
    const std::size_t bytes = path_.packed_bytes(c_.k, c_.n);
    EXPECT_EQ(bytes % 64, 0u);
    packed_ = std::make_unique<Guarded>(bytes * static_cast<std::size_t>(b_.batch));
    for (std::int64_t i = 0; i < b_.batch; ++i)
      path_.pack_b(c_.k, c_.n, b_.ref(i),
                   static_cast<char*>(packed_->data()) + static_cast<std::size_t>(i) * bytes);
  }

  GemmJob job() const {
    GemmJob job;
    job.m = c_.m, job.n = c_.n, job.k = c_.k;
    job.a = a_.ref();
    job.packed_b = packed_->data();
    job.c = out_->data();
    job.c_dtype = c_.c_dtype;
    job.c_row_stride = row_stride_;
    job.batch = c_.batch;
    job.a_batch_stride = a_.batch_stride;
    if (!c_.share_b) job.b_batch_stride = static_cast<std::int64_t>(path_.packed_bytes(c_.k, c_.n));
    job.c_batch_stride = batch_stride();
    job.epilogue.activation = c_.activation;
    job.epilogue.accumulate = c_.accumulate;
    if (c_.bias) job.epilogue.bias = bias_.data();
    if (c_.derivative) job.epilogue.derivative = slopes_->data();
    if (c_.factor) job.epilogue.factor = factor_->data();
    if (c_.residual) job.epilogue.residual = residual_->data();
    job.epilogue.residual_stride = row_stride_;
    return job;
  }

  bool element_right(std::int64_t b, std::int64_t r, std::int64_t j) const {
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < c_.k; ++i) {
      const double product = a_.at(b, r, i) * rounded(b_.at(c_.share_b ? 0 : b, i, j), operand_.b);
      sum += product;
      magnitude += std::abs(product);
    }
    const std::int64_t at = b * batch_stride() + r * row_stride_ + j;
    if (c_.bias) sum += get(bias_.data(), sum_type(), j);
    double value = apply(c_.activation, sum);
    // Activations on their way to bf16 are right to about 2^-13 of themselves.
    const bool narrow = c_.c_dtype == DType::bf16 && c_.activation != Activation::none;
    const double activation_error = narrow ? 0x1p-12 * std::abs(value) : 0;
    if (c_.factor) value *= get(factor_->data(), c_.c_dtype, at);
    if (c_.residual) value += get(residual_->data(), c_.c_dtype, at);
    if (c_.accumulate) value += get(before_->data(), c_.c_dtype, at);
    // Summation of k products, then a handful of operations of size <= 4, then rounding to C.
    const double tolerance = epsilon(sum_type()) * (static_cast<double>(c_.k) * magnitude + 16) +
                             0.51 * epsilon(c_.c_dtype) * std::abs(value) + activation_error;
    const double got = get(out_->data(), c_.c_dtype, at);
    const bool right = std::abs(got - value) <= tolerance;  // false for NaN
    EXPECT_TRUE(right) << "C[" << b << "," << r << "," << j << "] is " << got << ", should be "
                       << value << " within " << tolerance;
    if (!c_.derivative) return right;
    if (c_.activation == Activation::relu && std::abs(sum) <= tolerance) return right;  // jumps
    const double want = slope(c_.activation, sum);
    EXPECT_NEAR(get(slopes_->data(), c_.c_dtype, at), want,
                1.2 * tolerance + 0.51 * epsilon(c_.c_dtype) * std::abs(want) +
                    (c_.c_dtype == DType::bf16 ? 0x1p-12 : 8 * epsilon(sum_type())));
    return right;
  }

  // Between the rows of C nothing may change.
  void gaps_untouched() const {
    for (std::int64_t i = 0; i < elements(); ++i) {
      const std::int64_t in_batch = i % batch_stride();
      const bool element = in_batch < c_.m * row_stride_ && in_batch % row_stride_ < c_.n;
      if (element) continue;
      ASSERT_EQ(get(out_->data(), c_.c_dtype, i), get(before_->data(), c_.c_dtype, i));
      ASSERT_EQ(get(slopes_->data(), c_.c_dtype, i), get(before_->data(), c_.c_dtype, i));
    }
  }

  Case c_;
  Operands operand_;
  const GemmPath& path_;
  std::mt19937 random_;
  TestMatrix a_, b_;
  std::int64_t row_stride_;
  std::unique_ptr<Guarded> out_, before_, slopes_, factor_, residual_, packed_;
  Guarded bias_;
};

template <class Body>
void for_each_path(Body body) {
  for (const Isa isa : available_isas())
    for (const Operands operand : {Operands{DType::f32}, Operands{DType::bf16},
                                   Operands{DType::f64}, Operands{DType::f32, DType::bf16}})
      body(isa, operand);
}

// Does the product on tiles take a B that is not packed in two halves?
bool sums_in_halves(const Case& c, Operands operand) {
  GemmJob job;
  job.m = c.m, job.n = c.n, job.k = c.k;
  job.c_dtype = c.c_dtype;
  if constexpr (kHasTiles) return operand == DType::bf16 && amx::sums_in_halves(job);
  return false;
}

void expect_right(const Case& c, Isa isa, Operands operand) {
  Trial trial(c, isa, operand);
  trial.run();
  trial.compare(c.name(isa, operand));
  if (c.batch > 1 && !c.share_b) return;
  const std::vector<char> packed = trial.output_bytes();
  trial.run_unpacked();
  const std::string name = c.name(isa, operand) + ", B as it lies";
  if (isa == Isa::amx && sums_in_halves(c, operand))
    trial.compare(name);
  else
    EXPECT_EQ(packed, trial.output_bytes()) << name;
}

DType default_c(Operands operand) { return operand == DType::f64 ? DType::f64 : DType::f32; }

constexpr Order kOrders[] = {Order::rows, Order::columns, Order::gaps};
constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu,
                                       Activation::gelu_tanh, Activation::silu};

// ---- tests --------------------------------------------------------------------------------------

TEST(Gemm, ShapesAndOrders) {
  constexpr std::int64_t kShapes[][3] = {{0, 5, 3},    {3, 0, 4},    {2, 3, 0},    {1, 1, 1},
                                         {1, 17, 5},   {5, 1, 7},    {3, 33, 2},   {7, 13, 11},
                                         {12, 32, 16}, {13, 65, 33}, {16, 16, 32}, {24, 31, 65},
                                         {29, 47, 8},  {1, 64, 100}, {64, 1, 31}};
  for_each_path([&](Isa isa, Operands operand) {
    for (const auto& [m, n, k] : kShapes)
      for (const Order a : kOrders)
        for (const Order b : kOrders) {
          Case c{.m = m, .n = n, .k = k, .a_order = a, .b_order = b, .b_dtype = operand.b};
          c.c_dtype = default_c(operand);
          expect_right(c, isa, operand);
        }
  });
}

// The last three are cut where no panel of 48 columns begins: B packed, read in place, and packed
// by each block.
TEST(Gemm, LargerThanBlocks) {
  constexpr std::int64_t kShapes[][3] = {{37, 70, 801}, {150, 390, 20}, {12, 32, 1537},
                                         {300, 20, 50}, {4, 128, 2100}, {24, 128, 600},
                                         {5, 500, 70}};
  for_each_path([&](Isa isa, Operands operand) {
    int turn = 0;
    for (const auto& [m, n, k] : kShapes) {
      Case c{.m = m, .n = n, .k = k, .b_dtype = operand.b};
      c.a_order = kOrders[turn % 3], c.b_order = kOrders[(turn + 1) % 3];
      c.c_dtype = default_c(operand);
      c.accumulate = turn % 2 == 1;
      ++turn;
      expect_right(c, isa, operand);
    }
  });
}

// Last panels of every number of vectors, full and not, after none, one and several others.
TEST(Gemm, Widths) {
  for_each_path([&](Isa isa, Operands operand) {
    int turn = 0;
    for (std::int64_t n = 7; n <= 161; n += n % 8 == 1 ? 6 : 1, ++turn) {
      Case c{.m = 1 + turn % 20, .n = n, .k = 37, .b_dtype = operand.b};
      c.a_order = kOrders[turn % 3], c.b_order = kOrders[turn / 3 % 3];
      c.c_dtype = default_c(operand);
      expect_right(c, isa, operand);
    }
  });
}

// Operands near and far from each other in memory, read in place or packed by one or by all: the
// definition is left out here, because the smaller cases compare the packed product with it.
TEST(Gemm, UnpackedOperandsGiveTheSameBits) {
  constexpr Order kRows = Order::rows, kColumns = Order::columns;
  const Case kCases[] = {{.m = 128, .n = 128, .k = 200, .a_order = kColumns, .b_order = kRows},
                         {.m = 70, .n = 96, .k = 400, .a_order = kRows, .b_order = kRows},
                         {.m = 40, .n = 300, .k = 50, .a_order = kColumns, .b_order = kColumns},
                         {.m = 300, .n = 64, .k = 32, .a_order = kRows, .b_order = kColumns},
                         {.m = 260, .n = 500, .k = 410, .a_order = kColumns, .b_order = kRows}};
  for_each_path([&](Isa isa, Operands operand) {
    for (Case c : kCases) {
      c.b_dtype = operand.b, c.c_dtype = default_c(operand);
      if (isa == Isa::amx && sums_in_halves(c, operand)) continue;  // its own test: AmxGemm.Halves
      Trial trial(c, isa, operand);
      trial.run();
      const std::vector<char> packed = trial.output_bytes();
      trial.run_unpacked();
      EXPECT_EQ(packed, trial.output_bytes()) << c.name(isa, operand);
    }
  });
}

TEST(Gemm, SourceTypesOfB) {
  for_each_path([&](Isa isa, Operands operand) {
    for (const DType source : {DType::f32, DType::bf16, DType::f64})
      for (const Order order : kOrders) {
        Case c{.m = 9, .n = 39, .k = 71, .b_order = order, .b_dtype = source};
        c.c_dtype = default_c(operand);
        expect_right(c, isa, operand);
      }
  });
}

TEST(Gemm, Epilogues) {
  for_each_path([&](Isa isa, Operands operand) {
    for (const DType c_dtype : {DType::f32, DType::bf16, DType::f64}) {
      if ((operand == DType::f64) != (c_dtype == DType::f64)) continue;
      for (const Activation activation : kActivations)
        for (int flags = 0; flags < 16; ++flags) {
          Case c{.m = 14, .n = 37, .k = 9, .b_dtype = operand.b, .c_dtype = c_dtype};
          c.activation = activation;
          c.bias = flags & 1, c.derivative = flags & 2, c.residual = flags & 4;
          c.accumulate = (flags & 8) != 0 && c_dtype != DType::bf16;
          c.factor = (flags + static_cast<int>(activation)) % 2 == 0;
          if (flags % 3 == 0) c.k = 0;
          expect_right(c, isa, operand);
        }
    }
  });
}

TEST(Gemm, Batches) {
  for_each_path([&](Isa isa, Operands operand) {
    for (const bool share_b : {false, true}) {
      Case c{.m = 5, .n = 19, .k = 7, .b_dtype = operand.b, .batch = 33, .share_b = share_b};
      c.c_dtype = default_c(operand);
      c.bias = c.residual = c.derivative = c.factor = true;
      c.activation = Activation::silu;
      expect_right(c, isa, operand);
    }
  });
}

TEST(Gemm, SameBitsForAnyThreadCount) {
  const int threads = thread_count();
  for_each_path([&](Isa isa, Operands operand) {
    Case c{.m = 301, .n = 210, .k = 900, .a_order = Order::columns, .b_dtype = operand.b};
    c.c_dtype = default_c(operand);
    c.bias = true;
    std::vector<char> first;
    for (const int count : {1, 2, 3, 8}) {
      set_threads(count);
      Trial trial(c, isa, operand);
      trial.run();
      if (first.empty()) first = trial.output_bytes();
      EXPECT_EQ(first, trial.output_bytes()) << c.name(isa, operand) << " on " << count;
      trial.run_unpacked();
      EXPECT_EQ(first, trial.output_bytes()) << c.name(isa, operand) << " on " << count;
    }
  });
  set_threads(threads);
}

TEST(Gemm, RefusesTypesItDoesNotTake) {
  EXPECT_THROW(gemm_path(Isa::generic, DType::i32), Error);
  const GemmPath& path = gemm_path(Isa::generic, DType::f32);
  GemmJob job;
  job.c_dtype = DType::f64;
  EXPECT_THROW(path.run(job), Error);
  job.c_dtype = DType::bf16;
  job.epilogue.accumulate = true;
  EXPECT_THROW(path.run(job), Error);
}

// act(x · 1) for many x: the activations alone, in units in the last place of f32.
std::vector<float> activated(Isa isa, Operands operand, Activation activation,
                             const std::vector<float>& x) {
  const GemmPath& path = gemm_path(isa, operand);
  const float one = 1;
  alignas(64) char packed[4096];
  EXPECT_LE(path.packed_bytes(1, 1), sizeof packed);
  path.pack_b(1, 1, {&one, DType::f32, 1, 1}, packed);
  std::vector<float> y(x.size());
  GemmJob job;
  job.m = static_cast<std::int64_t>(x.size()), job.n = 1, job.k = 1;
  job.a = {x.data(), DType::f32, 1, 1};
  job.packed_b = packed;
  job.c = y.data(), job.c_row_stride = 1;
  job.epilogue.activation = activation;
  path.run(job);
  return y;
}

TEST(Gemm, ActivationsAreExactToAFewUnits) {
  std::vector<float> x;
  for (int i = -20000; i <= 20000; ++i) x.push_back(static_cast<float>(i) * 0.0007f);
  for (int e = -126; e < 127; ++e)
    for (const float s : {-1.37f, 1.37f}) x.push_back(std::ldexp(s, e));
  for (const Isa isa : available_isas())
    for (const Activation activation : kActivations) {
      const std::vector<float> y = activated(isa, DType::f32, activation, x);
      double worst = 0, worst_x = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = apply(activation, x[i]);
        const double slack = activation == Activation::gelu_tanh
                                 ? 1 + std::abs(1.6 * x[i] + 0.0714 * std::pow(x[i], 3))
                                 : 1;
        // The last unit is one of the denormal factor that x multiplies.
        const double unit = 0x1p-23 * std::abs(want) + 0x1p-149 * (1 + std::abs(x[i]));
        const double error = std::abs(y[i] - want) / (unit * slack);
        if (!(error <= worst)) worst = error, worst_x = x[i];
      }
      EXPECT_LE(worst, 4.0) << to_string(isa) << " activation " << static_cast<int>(activation)
                            << " at " << worst_x;
    }
}

TEST(Gemm, ActivationsOfSpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : available_isas())
    for (const Activation activation : kActivations) {
      const std::vector<float> y = activated(isa, DType::f32, activation, {0, inf, nan, -1e30f});
      EXPECT_EQ(y[0], 0);
      EXPECT_EQ(y[1], inf);
      EXPECT_TRUE(std::isnan(y[2])) << to_string(isa) << " " << static_cast<int>(activation);
      EXPECT_EQ(y[3], activation == Activation::none ? -1e30f : 0) << static_cast<int>(activation);
    }
}

// A forward pass is the same to the bit, whether or not its tape wants the derivative.
TEST(Gemm, DerivativesLeaveTheResultAlone) {
  for_each_path([&](Isa isa, Operands operand) {
    for (const DType c_dtype : {DType::f32, DType::bf16, DType::f64})
      for (const Activation activation : kActivations) {
        if ((operand == DType::f64) != (c_dtype == DType::f64)) continue;
        Case c{.m = 70, .n = 45, .k = 20, .b_dtype = operand.b, .c_dtype = c_dtype, .bias = true};
        c.activation = activation;
        Trial without(c, isa, operand);
        without.run();
        c.derivative = true;
        Trial with(c, isa, operand);
        with.run();
        EXPECT_EQ(without.output_bytes(), with.output_bytes()) << c.name(isa, operand);
      }
  });
}

// Columns of packed B are those of B, in the type that it is packed in.
TEST(Gemm, UnpacksWhatItPacked) {
  constexpr std::int64_t k = 801, n = 70;
  for_each_path([&](Isa isa, Operands operand) {
    std::mt19937 random(7);
    const TestMatrix b(k, n, operand.b, Order::columns, 1, random);
    const GemmPath& path = gemm_path(isa, operand);
    Guarded packed(path.packed_bytes(k, n));
    path.pack_b(k, n, b.ref(), packed.data());
    Guarded rows(static_cast<std::size_t>(k * (n - 3)) * size_of(operand.b));
    unpack_columns(isa, operand, {k, n, packed.data()}, 2, n - 1, rows.data());
    int wrong = 0;
    for (std::int64_t j = 2; j < n - 1; ++j)
      for (std::int64_t i = 0; i < k; ++i)
        wrong += get(rows.data(), operand.b, (j - 2) * k + i) != b.at(0, i, j);
    EXPECT_EQ(wrong, 0) << to_string(isa) << " " << to_string(operand.b);
    EXPECT_TRUE(rows.front_intact());
  });
}

// Rows of C do not depend on how many there are: each is the sum that it would be alone.
TEST(Gemm, RowsAreTheSameWithAnyNeighbours) {
  for_each_path([&](Isa isa, Operands operand) {
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{70, 900}, {200, 1600}}) {
      Case c{.m = 150, .n = n, .k = k, .b_order = Order::columns, .b_dtype = operand.b};
      c.c_dtype = default_c(operand);
      Trial trial(c, isa, operand);
      trial.run();
      const std::vector<char> all = trial.output_bytes();
      for (const std::int64_t rows : {1, 2, 3, 5, 6, 7, 8, 13, 16, 17, 31, 64, 149})
        EXPECT_TRUE(trial.same_rows(rows, all))
            << c.name(isa, operand) << ", " << rows << " rows alone";
    }
  });
}

// Ties to even, and f64 that would round twice on its way through f32.
TEST(Gemm, RoundsToNearestEvenWhenPacking) {
  const double tie_up = 1.0 + 3 * 0x1p-8, tie_down = 1.0 + 0x1p-8, above = 1.0 + 0x1p-8 + 0x1p-40;
  for (const Isa isa : available_isas()) {
    const GemmPath& path = gemm_path(isa, DType::bf16);
    const double b[3] = {tie_up, tie_down, above};
    alignas(64) char packed[4096];
    ASSERT_LE(path.packed_bytes(1, 3), sizeof packed);
    path.pack_b(1, 3, {b, DType::f64, 3, 1}, packed);
    const bf16 one = bf16::from_float(1);
    float c[3] = {};
    GemmJob job;
    job.m = 1, job.n = 3, job.k = 1;
    job.a = {&one, DType::bf16, 1, 1};
    job.packed_b = packed, job.c = c, job.c_row_stride = 3;
    path.run(job);
    EXPECT_EQ(c[0], 1.0f + 4 * 0x1p-8f);
    EXPECT_EQ(c[1], 1.0f);
    EXPECT_EQ(c[2], 1.0f + 2 * 0x1p-8f) << to_string(isa);
  }
}

}  // namespace
}  // namespace heddle::cpu
