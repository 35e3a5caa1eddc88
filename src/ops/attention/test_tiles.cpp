// Attention on emulated AMX tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "backend/cpu/threads.h"
#include "base/divide.h"
#include "heddle/memory.h"
#include "heddle/ops.h"
#include "heddle/tape.h"
#include "ops/attention/test_emulated.h"

namespace heddle::ops {
namespace {

struct Given {
  std::int64_t tokens, width;
  bool causal;
  std::int64_t key_heads = 2;
  std::optional<std::int64_t> look_back = {};
  double softcap = 0;
  bool relu = false, bias = false, sinks = false;
  double growth = 0;  // of the keys' size, so that later ones outweigh all before
  std::int64_t batch = 1;
};

std::vector<Tensor> run(const Given& g, DType dtype) {
  const auto normal = [&](std::uint32_t stream) {
    const Shape shape{g.batch, g.tokens, stream == 2 || stream == 3 ? g.key_heads : 2, g.width};
    return random_normal(shape, 0, 1, {3, 0, stream}, DType::f64);
  };
  const auto rounded = [&](const Tensor& t) { return cast(cast(t, DType::bf16), dtype); };
  const auto random = [&](std::uint32_t stream) { return rounded(normal(stream)); };
  std::vector<double> sizes(static_cast<std::size_t>(g.tokens));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = 1 + g.growth * static_cast<double>(i) / static_cast<double>(g.tokens);
  const Tensor size = Tensor::from<double>({1, g.tokens, 1, 1}, std::span<const double>(sizes));
  std::vector<Tensor> x = {random(1), rounded(mul(normal(2), size)), random(3)};
  const Tensor dy = random(4);
  for (Tensor& t : x) t.set_requires_grad(true);
  Tape tape;
  AttentionOptions options;
  options.mask.causal = g.causal;
  options.mask.look_back = g.look_back;
  options.softcap = g.softcap;
  if (g.relu) options.normaliser = Normaliser::relu;
  const DType sums = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (g.bias)
    options.relative_bias =
        random_normal({2, 2 * g.tokens - 1}, 0, 1, {3, 0, 5}, sums).set_requires_grad(true);
  if (g.sinks) options.sinks = random_normal({2}, 0, 1, {3, 0, 6}, sums).set_requires_grad(true);
  const Tensor y = attention(x[0], x[1], x[2], options);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  std::vector<Tensor> out = {y.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
  for (const Tensor* t : {&options.relative_bias, &options.sinks})
    if (t->defined()) out.push_back(t->grad());
  return out;
}

// Whether the kernel of long heads takes it: short ones have another, and so have scores that are
// more than a product times a scale.
bool long_head(const Given& g) {
  const cpu::AttentionShape s{g.batch, g.tokens, g.tokens, 2, g.key_heads, g.width, g.width};
  return !cpu::fits_whole(s) && g.width % 32 == 0 && g.softcap == 0 && !g.relu && !g.bias;
}

// Sums of squares, of how far a is from b and of b.
struct Distance {
  double error = 0, size = 0;
};

Distance distance(const Tensor& a, const Tensor& b) {
  const auto x = cast(a, DType::f64).to_vector<double>(),
             y = cast(b, DType::f64).to_vector<double>();
  Distance d;
  for (std::size_t i = 0; i < x.size(); ++i) {
    d.error += (x[i] - y[i]) * (x[i] - y[i]);
    d.size += y[i] * y[i];
  }
  return d;
}

double relative_error(const Tensor& a, const Tensor& b) {
  const Distance d = distance(a, b);
  return std::sqrt(d.error / d.size);
}

TEST(AttentionOnTiles, IsAttention) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  for (const Given& g :
       {Given{200, 64, true}, Given{400, 32, false}, Given{96, 128, true}, Given{100, 40, true},
        Given{333, 64, true, 1}, Given{500, 64, true, 2, 70}, Given{210, 96, false, 1, {}, 3},
        Given{.tokens = 310, .width = 64, .causal = true, .relu = true},
        Given{.tokens = 200, .width = 128, .causal = false, .bias = true},
        Given{.tokens = 200, .width = 64, .causal = true, .relu = true, .bias = true},
        Given{.tokens = 300, .width = 32, .causal = true, .look_back = 100, .sinks = true},
        Given{.tokens = 1300, .width = 64, .causal = false, .growth = 20}, Given{700, 128, true, 1},
        Given{600, 96, true, 2, 300}, Given{520, 32, false, 1},
        Given{.tokens = 270, .width = 64, .causal = true, .sinks = true, .batch = 8},
        // Heads that the backward pass takes as a whole.
        Given{64, 32, true}, Given{64, 32, false}, Given{50, 64, true, 1}, Given{128, 32, true},
        Given{127, 96, false, 1}, Given{120, 32, true, 2, 20}, Given{9, 32, true},
        Given{.tokens = 64, .width = 32, .causal = true, .growth = 20},
        Given{.tokens = 250, .width = 32, .causal = true, .batch = 8}}) {
    const std::vector<Tensor> want = run(g, DType::f64);
    taken = 0;
    taken_backward = 0;
    cpu::planted_attention_tiles = &counted_tiles;
    const std::vector<Tensor> got = run(g, DType::bf16);
    cpu::planted_attention_tiles = nullptr;
    EXPECT_EQ(taken > 0, g.width % 32 == 0);  // other widths do not fill tiles
    EXPECT_EQ(taken_backward > 0, long_head(g)) << g.tokens;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_LT(relative_error(got[i], want[i]), 0.01) << g.tokens << ", tensor " << i;
  }
}

// Queries and keys, or values, without a single element.
TEST(AttentionOnTiles, NoWidth) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  for (const std::int64_t tokens : {100, 300})
    for (const std::int64_t width : {0, 32}) {
      const auto gradients = [&](DType dtype) {
        const auto random = [&](std::int64_t size, std::uint32_t stream) {
          return cast(random_normal({1, tokens, 1, size}, 0, 1, {3, 0, stream}, DType::f64), dtype);
        };
        std::vector<Tensor> x = {random(width, 1), random(width, 2), random(32 - width, 3)};
        for (Tensor& t : x) t.set_requires_grad(true);
        Tape tape;
        AttentionOptions options;
        options.scale = 1;
        const Tensor y = attention(x[0], x[1], x[2], options);
        const Tensor dy = random(32 - width, 4);
        tape.backward(std::span(&y, 1), std::span(&dy, 1));
        return std::vector<Tensor>{y.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
      };
      const std::vector<Tensor> want = gradients(DType::f64);
      cpu::planted_attention_tiles = &counted_tiles;
      const std::vector<Tensor> got = gradients(DType::bf16);
      cpu::planted_attention_tiles = nullptr;
      for (std::size_t i = 0; i < want.size(); ++i) {
        const Distance d = distance(got[i], want[i]);
        EXPECT_LE(d.error, 1e-4 * d.size) << tokens << ", " << width << ", tensor " << i;
      }
    }
}

TEST(AttentionOnTiles, ThreadsDoNotChangeABit) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  const int before = cpu::thread_count();
  const OnEmulatedTiles tiles;
  for (const Given& g :
       {Given{.tokens = 600, .width = 64, .causal = true, .key_heads = 1},
        Given{.tokens = 100, .width = 32, .causal = true, .key_heads = 1, .batch = 16},  // whole
        Given{.tokens = 300, .width = 32, .causal = true, .key_heads = 1, .bias = true},
        Given{.tokens = 300, .width = 32, .causal = false, .key_heads = 1, .sinks = true}}) {
    cpu::set_threads(1);
    const std::vector<Tensor> want = run(g, DType::bf16);
    cpu::set_threads(3);
    const std::vector<Tensor> got = run(g, DType::bf16);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(relative_error(got[i], want[i]), 0) << g.tokens << " tokens, tensor " << i;
  }
  cpu::set_threads(before);
}

// Of the backward pass at most, in bytes.
struct BookedBytes {
  std::int64_t workspace = 0, thread_buffers = 0;
};

BookedBytes backward_bytes(const cpu::AttentionShape& s, Device device) {
  const auto filled = [&](std::int64_t tokens, std::int64_t heads) {
    return Tensor::full({s.batch, tokens, heads, s.width}, 0.1, DType::bf16, device)
        .set_requires_grad(true);
  };
  const Tensor q = filled(s.queries, s.heads), k = filled(s.keys, s.key_heads),
               v = filled(s.keys, s.key_heads);
  const Tensor dy = Tensor::full(q.shape(), 0.1, DType::bf16, device);
  Tape tape;
  const Tensor y = attention(q, k, v);
  const auto workspace = static_cast<std::size_t>(Purpose::workspace);
  const std::int64_t before = memory_use(device).live_by_purpose[workspace];
  reset_peak_memory(device);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  const MemoryUse use = memory_use(device);
  return {use.peak_by_purpose[workspace] - before, use.thread_buffers_peak};
}

// A whole head is packed and summed in a thread's scratch; of a long one the queries are packed for
// all, with their gradients' sums.
TEST(AttentionOnTiles, BooksWhatItUses) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  const OnEmulatedTiles tiles;
  const cpu::AttentionShape short_heads{8, 60, 60, 4, 2, 32, 32},
      long_heads{8, 300, 300, 4, 2, 32, 32};
  const auto scratch = [](const cpu::AttentionShape& s, cpu::BackwardPath path) {
    return cpu::thread_count() * cpu::attention_scratch_bytes(s, 4, path);
  };
  const std::int64_t rows = 8 * 4 * round_up(300, cpu::kQueryBlock);
  const std::int64_t of_long = 4 * rows * 32 * 2 +               // Q and dY in two forms, bf16
                               rows * 32 * 4 + 8 * 4 * 300 * 4;  // dQ and delta, f32
  const int before = cpu::thread_count();
  for (const int threads : {1, 3})
    for (const Device device : {Device::cpu, Device::meta}) {
      cpu::set_threads(threads);
      const BookedBytes of_short_heads = backward_bytes(short_heads, device);
      const BookedBytes of_long_heads = backward_bytes(long_heads, device);
      EXPECT_EQ(of_short_heads.workspace, 0);
      EXPECT_EQ(of_short_heads.thread_buffers,
                scratch(short_heads, cpu::BackwardPath::whole_heads));
      EXPECT_EQ(of_long_heads.workspace, of_long);
      EXPECT_EQ(of_long_heads.thread_buffers, scratch(long_heads, cpu::BackwardPath::long_heads));
    }
  cpu::set_threads(before);
}

// No kernel writes outside the memory booked for it.
TEST(AttentionOnTiles, StaysWithinItsBuffers) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  const std::int64_t before = guard_violations();
  set_guard_mode(true);
  {
    const OnEmulatedTiles tiles;
    for (const Given& g :
         {Given{60, 32, true}, Given{250, 128, false, 1}, Given{256, 96, true, 2, 20},
          Given{.tokens = 250, .width = 32, .causal = true, .sinks = true, .batch = 8},
          Given{300, 128, true, 1}, Given{600, 32, false}, Given{9, 64, true}})
      EXPECT_GE(run(g, DType::bf16).size(), 4u);
  }
  set_guard_mode(false);
  EXPECT_EQ(guard_violations(), before);
}

// dq, dk and dv where there are more queries than keys, or fewer.
std::vector<Tensor> cross_gradients(std::int64_t queries, std::int64_t keys, DType dtype) {
  const auto random = [&](std::int64_t tokens, std::uint32_t stream) {
    const Tensor t = random_normal({1, tokens, 2, 64}, 0, 1, {5, 0, stream}, DType::f64);
    return cast(cast(t, DType::bf16), dtype);
  };
  std::vector<Tensor> x = {random(queries, 1), random(keys, 2), random(keys, 3)};
  const Tensor dy = random(queries, 4);
  for (Tensor& t : x) t.set_requires_grad(true);
  Tape tape;
  const Tensor y = attention(x[0], x[1], x[2], {});
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  return {x[0].grad(), x[1].grad(), x[2].grad()};
}

TEST(AttentionOnTiles, QueriesAndKeysNeedNotBeAsMany) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  struct Sizes {
    std::int64_t queries, keys;
  };
  for (const Sizes& s : {Sizes{300, 40}, {40, 530}, {1, 600}, {290, 1}, {300, 0}, {0, 300}}) {
    const std::vector<Tensor> want = cross_gradients(s.queries, s.keys, DType::f64);
    cpu::planted_attention_tiles = &counted_tiles;
    cross_gradients(300, 300, DType::bf16);  // leaves something where sums are made
    const std::vector<Tensor> got = cross_gradients(s.queries, s.keys, DType::bf16);
    cpu::planted_attention_tiles = nullptr;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Distance d = distance(got[i], want[i]);
      // A single key has all the weight whatever its score: dq and dk are what rounding leaves.
      EXPECT_LT(d.error, 1e-4 * d.size + 1e-2)
          << s.queries << " queries, " << s.keys << " keys, tensor " << i;
    }
  }
}

// Gradients where queries of a document without keys are between two whose keys share a block; a
// last document has `rest` tokens, and no query sees the last of their keys. Without documents
// everything sees everything.
std::vector<Tensor> document_gradients(std::int64_t rest, DType dtype, bool documents) {
  const std::int64_t query_count = 96 + rest, key_count = 32 + rest;
  const auto random = [&](std::int64_t tokens, std::uint32_t stream) {
    const Tensor t = random_normal({1, tokens, 1, 32}, 0, 1, {4, 0, stream}, DType::f64);
    return cast(cast(t, DType::bf16), dtype);
  };
  std::vector<std::int64_t> queries(static_cast<std::size_t>(query_count), 3);
  std::vector<std::int64_t> keys(static_cast<std::size_t>(key_count), 3);
  for (std::size_t i = 0; i < 96; ++i) queries[i] = static_cast<std::int64_t>(i / 32);
  for (std::size_t i = 0; i < 32; ++i) keys[i] = i < 16 ? 0 : 2;
  for (std::size_t i = 32; i < keys.size(); ++i)
    if (i + 64 >= keys.size()) keys[i] = 4;
  std::vector<Tensor> x = {random(query_count, 1), random(key_count, 2), random(key_count, 3)};
  const Tensor dy = random(query_count, 4);
  for (Tensor& t : x) t.set_requires_grad(true);
  AttentionOptions options;
  if (documents) {
    options.mask.query_documents =
        Tensor::from<std::int64_t>({1, query_count}, std::span<const std::int64_t>(queries));
    options.mask.key_documents =
        Tensor::from<std::int64_t>({1, key_count}, std::span<const std::int64_t>(keys));
  }
  Tape tape;
  const Tensor y = attention(x[0], x[1], x[2], options);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  return {x[0].grad(), x[1].grad(), x[2].grad()};
}

// Leftovers of the last call in the weights of queries that see nothing must not count.
TEST(AttentionOnTiles, QueriesThatSeeNothingLieBetweenOthers) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  for (const std::int64_t rest : {0, 200}) {  // a short head and a long one
    const std::vector<Tensor> want = document_gradients(rest, DType::f64, true);
    taken_backward = 0;
    cpu::planted_attention_tiles = &counted_tiles;
    document_gradients(rest, DType::bf16, false);
    const std::vector<Tensor> got = document_gradients(rest, DType::bf16, true);
    cpu::planted_attention_tiles = nullptr;
    EXPECT_EQ(taken_backward > 0, rest > 0);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_LT(relative_error(got[i], want[i]), 0.01) << rest << ", tensor " << i;
  }
}

// Small whole numbers: sums are exact.
float low(std::int64_t i) { return static_cast<float>(i % 7 - 3); }
float high(std::int64_t i) { return static_cast<float>(i % 5 - 2); }
std::uint32_t word(std::int64_t i) {
  return bf16::from_float(low(i)).bits | static_cast<std::uint32_t>(bf16::from_float(high(i)).bits)
                                             << 16;
}

// Against sums in plain loops, on words whose products and sums are exact.
void check_small_product(std::int64_t steps, bool panels, bool add) {
  constexpr std::int64_t kRows = 64, kColumns = 96;
  // Exactly as large as the product reads: a sanitizer would see more.
  std::vector<std::uint32_t> a(static_cast<std::size_t>(kRows * steps));
  std::vector<std::uint32_t> b(static_cast<std::size_t>(steps * kColumns));
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t s = 0; s < steps; ++s)
      a[static_cast<std::size_t>(r * steps + s)] = word(r * 11 + s);
  const std::int64_t step = panels ? 32 : kColumns, panel = panels ? steps * 32 : 32;
  for (std::int64_t s = 0; s < steps; ++s)
    for (std::int64_t c = 0; c < kColumns; ++c)
      b[static_cast<std::size_t>(c / 32 * panel + s * step + c % 32)] = word(s * 13 + c);
  std::vector<float> c(kRows * kColumns, 100.0f);
  const cpu::SmallProduct p{a.data(), steps,    b.data(), step,     panel, kRows,
                            steps,    kColumns, c.data(), kColumns, add};
  ASSERT_TRUE(cpu::fits_tiles(p));
  cpu::amx_small_product_emulated(p);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t n = 0; n < kColumns; ++n) {
      float sum = add ? 100.0f : 0.0f;
      for (std::int64_t s = 0; s < steps; ++s)
        sum += low(r * 11 + s) * low(s * 13 + n) + high(r * 11 + s) * high(s * 13 + n);
      ASSERT_EQ(c[static_cast<std::size_t>(r * kColumns + n)], sum) << r << " " << n;
    }
}

TEST(SmallProduct, IsAProduct) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  for (const std::int64_t steps : {0, 16, 32, 48})
    for (const bool panels : {true, false})  // B in panels, or row-major
      for (const bool add : {true, false}) check_small_product(steps, panels, add);
}

}  // namespace
}  // namespace heddle::ops
