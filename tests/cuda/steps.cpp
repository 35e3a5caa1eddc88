// Steps of generation: calls of a few rows that wait for each other and are launched together, each
// alone, and repeated as a graph. All three must have the same bits; products and attention are
// judged against their definition in f64 on the host.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "backend/copy.call.h"
#include "backend/repeat.h"
#include "cuda/sides.h"
#include "cuda/timing.h"
#include "heddle/memory.h"
#include "ops/attention/attention.call.h"
#include "ops/gather/gather.call.h"
#include "ops/glu/glu.call.h"
#include "ops/linear/linear.call.h"
#include "ops/norm/norm.call.h"
#include "ops/rope/rope.call.h"
#include "tensor/storage.h"

namespace heddle::cuda_tests {

namespace {

const Device kGpu = Device::cuda(0);

// Asks for the stream: what is held back is launched.
void let_go() { (void)Tensor::zeros({1}, DType::i32, kGpu); }

struct ModelSize {
  std::int64_t layers, width, heads, key_heads, head_width, hidden, vocabulary, rows, batch;
  bool centred = false, bias = false, rope = true, interleaved = false;
  Gate gate = Gate::silu;
};

std::vector<double> numbers_of(const Tensor& x) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(x.elements()));
  const Tensor here = x.to(Device::cpu);
  for (std::int64_t i = 0; i < x.elements(); ++i)
    out.push_back(x.dtype() == DType::f32 ? static_cast<double>(here.data<float>()[i])
                                          : here.data<bf16>()[i].to_float());
  return out;
}

// Relative to the largest.
double error_of(const std::vector<double>& got, const std::vector<double>& wanted) {
  double worst = 0, most = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - wanted[i]);
    worst = std::isfinite(got[i]) ? std::max(worst, off) : 1e30;
    most = std::max(most, std::abs(wanted[i]));
  }
  return worst / most;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

Tensor scaled_noise(const Shape& shape, DType dtype, double scale) {
  const Tensor x = noise(shape, DType::f32).to(Device::cpu);
  std::vector<float> v(x.data<float>(), x.data<float>() + x.elements());
  for (float& e : v) e *= static_cast<float>(scale);
  if (dtype == DType::f32) return Tensor::from<float>(shape, std::span<const float>(v), kGpu);
  std::vector<bf16> narrow;
  narrow.reserve(v.size());
  for (const float e : v) narrow.push_back(bf16::from_float(e));
  return Tensor::from<bf16>(shape, std::span<const bf16>(narrow), kGpu);
}

struct Layer {
  Tensor first_gain, first_bias, second_gain, second_bias;
  Tensor q, k, v, out, in, down, q_bias, in_bias;
  Tensor keys, values;  // caches, [B, rows, G, D]
};

// The calls that a decoder of a pre-norm Transformer makes for one token.
class Steps {
 public:
  explicit Steps(const ModelSize& size) : s_(size) {
    const std::int64_t d = s_.head_width;
    const double by = 1 / std::sqrt(static_cast<double>(s_.width));
    layers_.reserve(static_cast<std::size_t>(s_.layers));
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      Layer l;
      l.first_gain = noise({s_.width}, DType::f32);
      l.second_gain = noise({s_.width}, DType::f32);
      if (s_.centred) l.first_bias = noise({s_.width}, DType::f32);
      l.q = weight(s_.heads * d, s_.width, by);
      l.k = weight(s_.key_heads * d, s_.width, by);
      l.v = weight(s_.key_heads * d, s_.width, by);
      l.out = weight(s_.width, s_.heads * d, by);
      l.in = weight(2 * s_.hidden, s_.width, by);
      l.down = weight(s_.width, s_.hidden, by);
      if (s_.bias) l.q_bias = noise({s_.heads * d}, DType::f32);
      if (s_.bias) l.in_bias = noise({2 * s_.hidden}, DType::f32);
      l.keys = noise({s_.batch, s_.rows, s_.key_heads, d}, DType::bf16);
      l.values = noise({s_.batch, s_.rows, s_.key_heads, d}, DType::bf16);
      layers_.push_back(l);
    }
    head_ = weight(s_.vocabulary, s_.width, by);
    cos_ = noise({s_.rows, d / 2}, DType::f32);
    sin_ = noise({s_.rows, d / 2}, DType::f32);
    x_ = noise({s_.batch, s_.width}, DType::bf16);
    at_ = Tensor::zeros({1}, DType::i32, kGpu);
    keys_.intervals = Tensor::zeros({2, s_.batch, 1}, DType::i32, kGpu);
    keys_.ends = Tensor::zeros({s_.batch}, DType::i32, kGpu);
    keys_.keys = s_.rows;
  }

  // The host's part: the next token is number `position`.
  void place(std::int32_t position) {
    overwrite(at_, Tensor::from<std::int32_t>({1}, {position}));
    std::vector<std::int32_t> seen(static_cast<std::size_t>(2 * s_.batch), 0);
    std::fill(seen.begin() + s_.batch, seen.end(), position + 1);
    overwrite(keys_.intervals, Tensor::from<std::int32_t>(keys_.intervals.shape(),
                                                          std::span<const std::int32_t>(seen)));
    const std::vector<std::int32_t> ends(static_cast<std::size_t>(s_.batch), position + 1);
    overwrite(keys_.ends,
              Tensor::from<std::int32_t>(keys_.ends.shape(), std::span<const std::int32_t>(ends)));
  }

  // Logits, and everything else that was written on the way.
  std::vector<Tensor> run(bool apart) {
    apart_ = apart;
    std::vector<Tensor> all;
    Tensor sum = x_, branch;
    for (Layer& l : layers_) {
      Tensor y = norm(branch, sum, l.first_gain, l.first_bias, all);
      branch = attend(l, y, all);
      y = norm(branch, sum, l.second_gain, l.second_bias, all);
      branch = feed(l, y, all);
    }
    const Tensor y = norm(branch, sum, layers_[0].first_gain, {}, all);
    all.push_back(products(y, {{head_, {}}}, DType::f32)[0]);
    between();
    return all;
  }

  // The cache as it was, for another go.
  std::vector<Tensor> caches() const {
    std::vector<Tensor> all;
    all.reserve(2 * layers_.size());
    for (const Layer& l : layers_) {
      all.push_back(l.keys.to(Device::cpu));
      all.push_back(l.values.to(Device::cpu));
    }
    return all;
  }
  void restore(const std::vector<Tensor>& caches) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      overwrite(layers_[i].keys, caches[2 * i]);
      overwrite(layers_[i].values, caches[2 * i + 1]);
    }
  }

 private:
  struct Weight {
    Tensor weight, bias;
  };

  static Tensor weight(std::int64_t n, std::int64_t k, double by) {
    return scaled_noise({n, k}, DType::bf16, by);
  }

  void between() const {
    if (apart_) let_go();
  }

  Tensor norm(const Tensor& branch, Tensor& sum, const Tensor& gain, const Tensor& bias,
              std::vector<Tensor>& all) {
    Tensor joined, y = Tensor::empty(sum.shape(), DType::bf16, kGpu), none;
    if (branch.defined()) joined = Tensor::empty(sum.shape(), DType::bf16, kGpu);
    backend::launch(ops::NormCall{s_.centred, 1e-5, branch.defined() ? branch : sum,
                                  branch.defined() ? sum : none, gain, bias, joined, y, none,
                                  none});
    between();
    if (branch.defined()) sum = joined;
    all.push_back(sum);
    all.push_back(y);
    return y;
  }

  std::vector<Tensor> products(const Tensor& x, const std::vector<Weight>& weights, DType dtype) {
    std::vector<ops::Product> all;
    std::vector<Tensor> made;
    all.reserve(weights.size());
    made.reserve(weights.size());
    for (const Weight& w : weights) {
      ops::Product p;
      p.a = x;
      p.b = views::transpose(w.weight, 0, 1);
      p.of_weight = true;
      p.bias = w.bias;
      p.c = Tensor::empty({x.size(0), w.weight.size(0)}, dtype, kGpu);
      made.push_back(p.c);
      all.push_back(p);
    }
    backend::launch(ops::ProductsCall{all, {}});
    between();
    return made;
  }

  Tensor turned(const Tensor& x, std::vector<Tensor>& all) {
    if (!s_.rope) return x;
    Tensor y = Tensor::empty(x.shape(), DType::bf16, kGpu);
    const auto pairing = s_.interleaved ? ops::Pairing::interleaved : ops::Pairing::half;
    backend::launch(ops::RopeCall{pairing, 0, 1, at_, cos_, sin_, x, y});
    between();
    all.push_back(y);
    return y;
  }

  Tensor attend(Layer& l, const Tensor& x, std::vector<Tensor>& all) {
    const std::vector<Tensor> made =
        products(x, {{l.q, l.q_bias}, {l.k, {}}, {l.v, {}}}, DType::bf16);
    all.insert(all.end(), made.begin(), made.end());
    const auto heads = [&](const Tensor& t, std::int64_t count) {
      return views::reshape(t, {s_.batch, 1, count, s_.head_width});
    };
    const Tensor q = turned(heads(made[0], s_.heads), all);
    const Tensor k = turned(heads(made[1], s_.key_heads), all);
    backend::launch(ops::PutRowCall{at_, k, l.keys});
    between();
    backend::launch(ops::PutRowCall{at_, heads(made[2], s_.key_heads), l.values});
    between();
    ops::AttentionInputs in;
    in.options.scale = 1 / std::sqrt(static_cast<double>(s_.head_width));
    in.q = q;
    in.k = l.keys;
    in.v = l.values;
    in.keys = keys_;
    Tensor y = Tensor::empty(q.shape(), DType::bf16, kGpu), none;
    Tensor sums = Tensor::empty({s_.batch, s_.heads, 1}, DType::f32, kGpu);
    backend::launch(ops::AttentionCall{in, y, sums, none});
    between();
    all.push_back(y);
    all.push_back(sums);
    const Tensor joined = views::reshape(y, {s_.batch, s_.heads * s_.head_width});
    all.push_back(products(joined, {{l.out, {}}}, DType::bf16)[0]);
    return all.back();
  }

  Tensor feed(const Layer& l, const Tensor& x, std::vector<Tensor>& all) {
    const Tensor both = products(x, {{l.in, l.in_bias}}, DType::bf16)[0];
    Tensor h = Tensor::empty({s_.batch, s_.hidden}, DType::bf16, kGpu);
    backend::launch(ops::GluCall{{s_.batch, s_.hidden, 2 * s_.hidden},
                                 views::slice(both, 1, 0, s_.hidden),
                                 views::slice(both, 1, s_.hidden, 2 * s_.hidden),
                                 h,
                                 {s_.gate, 7}});
    between();
    all.push_back(both);
    all.push_back(h);
    all.push_back(products(h, {{l.down, {}}}, DType::bf16)[0]);
    return all.back();
  }

  ModelSize s_;
  bool apart_ = false;
  std::vector<Layer> layers_;
  Tensor head_, cos_, sin_, x_, at_;
  ops::VisibleKeys keys_;
};

bool all_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = same_bits(a[i], b[i]);
  return same;
}

// Together, apart and repeated, at places on both sides of a piece's edge.
void same_three_ways(const std::string& what, const ModelSize& size) {
  Steps steps(size);
  const std::vector<Tensor> before = steps.caches();
  backend::Repeated repeated;
  for (const std::int32_t at : {127, 5, 128, 130, 200}) {
    const std::string place = what + " at " + std::to_string(at);
    steps.restore(before);
    steps.place(at);
    const std::vector<Tensor> apart = steps.run(true);
    const std::vector<Tensor> caches = steps.caches();
    steps.restore(before);
    const std::vector<Tensor> together = steps.run(false);
    judge_true(place + ": together as apart", all_same(together, apart));
    judge_true(place + ": the cache", all_same(caches, steps.caches()));
    steps.restore(before);
    const std::vector<Tensor> again = repeated.run(kGpu, {1}, [&] { return steps.run(false); });
    judge_true(place + ": repeated", all_same(again, apart));
    judge_true(place + ": the cache, repeated", all_same(caches, steps.caches()));
  }
}

// Guard mode writes memory that is handed out, which asks for the stream: nothing would be held
// back.
class WithoutGuard {
 public:
  WithoutGuard() { set_guard_mode(false); }
  ~WithoutGuard() { set_guard_mode(true); }
  WithoutGuard(const WithoutGuard&) = delete;
  WithoutGuard& operator=(const WithoutGuard&) = delete;
};

void steps_three_ways() {
  const WithoutGuard without_guard;
  const ModelSize usual{2, 256, 8, 2, 64, 352, 517, 260, 1};
  same_three_ways("a step", usual);
  ModelSize s = usual;
  s.batch = 3;
  s.interleaved = s.centred = s.bias = true;
  s.gate = Gate::gelu;
  same_three_ways("three sequences", s);
  s = usual;
  s.head_width = 128;
  s.heads = s.key_heads = 2;
  s.gate = Gate::clamped;
  s.rope = false;
  same_three_ways("wide heads, no rotation", s);
  s = usual;
  s.batch = 11;
  same_three_ways("more than a few rows", s);
}

void few_row_products() {
  for (const std::int64_t k : {8, 40, 256, 2048, 5632})
    for (const std::int64_t n : {1, 16, 37, 300})
      for (const std::int64_t m : {1, 2, 7, 8}) {
        const Tensor x = noise({m, k}, DType::bf16), w = noise({n, k}, DType::bf16);
        const Tensor bias = noise({n}, DType::f32), residual = noise({m, n}, DType::bf16);
        const std::vector<double> a = numbers_of(x), b = numbers_of(w), c = numbers_of(bias),
                                  r = numbers_of(residual);
        for (const bool wide : {false, true}) {
          ops::Product p;
          p.a = x;
          p.b = views::transpose(w, 0, 1);
          p.of_weight = true;
          p.bias = bias;
          p.c = Tensor::empty({m, n}, wide ? DType::f32 : DType::bf16, kGpu);
          if (!wide) p.activation = Activation::relu;
          if (!wide) p.residual = residual;
          backend::launch(ops::ProductsCall{std::span(&p, 1), {}});
          std::vector<double> wanted;
          wanted.reserve(static_cast<std::size_t>(m * n));
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = c[static_cast<std::size_t>(j)];
              for (std::int64_t e = 0; e < k; ++e)
                sum +=
                    a[static_cast<std::size_t>(i * k + e)] * b[static_cast<std::size_t>(j * k + e)];
              wanted.push_back(wide ? sum
                                    : std::max(sum, 0.0) + r[static_cast<std::size_t>(i * n + j)]);
            }
          judge_true("product of few rows " + to_string(Shape{m, n, k}) + (wide ? " wide" : ""),
                     error_of(numbers_of(p.c), wanted) < (wide ? 2e-5 : 6e-3));
          // A row has the same bits whoever its neighbours are.
          if (m == 1) continue;
          ops::Product one = p;
          one.a = views::slice(x, 0, m - 1, m);
          one.c = Tensor::empty({1, n}, p.c.dtype(), kGpu);
          if (!wide)
            one.residual = Tensor::from<bf16>(
                {1, n},
                std::span<const bf16>(residual.to(Device::cpu).data<bf16>() + (m - 1) * n,
                                      static_cast<std::size_t>(n)),
                kGpu);
          backend::launch(ops::ProductsCall{std::span(&one, 1), {}});
          const std::vector<double> alone = numbers_of(one.c), all = numbers_of(p.c);
          judge_true("a row of few " + to_string(Shape{m, n, k}),
                     std::equal(alone.begin(), alone.end(), all.end() - n));
        }
      }
}

void recordings() {
  backend::Repeated repeated;
  Tensor x = Tensor::zeros({4}, DType::f32, kGpu);
  int calls = 0;
  const auto work = [&] {  // reads, so that it cannot be recorded
    ++calls;
    (void)x.to(Device::cpu);
    return std::vector{x};
  };
  for (int i = 0; i < 4; ++i) (void)repeated.run(kGpu, {1}, work);
  judge_true("work that reads runs every time", calls == 5);  // the recording gave up in the middle
  calls = 0;
  const Tensor y = noise({1000}, DType::f32);
  const auto copy = [&] {
    ++calls;
    Tensor z = Tensor::empty({1000}, DType::f32, kGpu);
    backend::launch(backend::CopyCall{y, z});
    return std::vector{z};
  };
  bool same = true;
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> z = repeated.run(kGpu, {2}, copy);
    // Memory that others take meanwhile is not the recording's.
    const Tensor other = Tensor::full({1000}, 7, DType::f32, kGpu);
    same = same && same_bits(z[0], y);
  }
  judge_true("a recording is called twice", calls == 2 && same);
}

}  // namespace

void test_steps() {
  recordings();
  few_row_products();
  steps_three_ways();
}

void measure_steps() {
  std::printf("Llama 1.1B, one token, 512 keys: tokens/s launched, repeated\n");
  for (const std::int64_t batch : {1, 4, 8, 64}) {
    const ModelSize llama{22, 2048, 32, 4, 64, 5632, 32000, 640, batch};
    Steps steps(llama);
    steps.place(511);
    backend::Repeated repeated;
    const auto again = [&] { (void)repeated.run(kGpu, {1}, [&] { return steps.run(false); }); };
    for (int i = 0; i < 3; ++i) again();
    const auto per_second = [&](double s) { return static_cast<double>(batch) / s; };
    const double launched = seconds([&] { (void)steps.run(false); }, 10);
    const double as_graph = seconds(again, 20);
    std::printf("  batch %2d: %8.0f %8.0f\n", static_cast<int>(batch), per_second(launched),
                per_second(as_graph));
  }
}

}  // namespace heddle::cuda_tests
