#include "nn/attention/definition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "heddle/ops.h"

namespace heddle::nn::book {

namespace {

using Doubles = std::vector<double>;
using Index = std::int64_t;

Tensor constant(const Shape& shape, const Doubles& values) {
  return Tensor::from<double>(shape, values);
}

// x · wᵀ + b for rows begin .. begin + count of w and b.
Tensor project(const Tensor& x, const Parameters& p, const std::string& name, Index begin,
               Index count) {
  const Tensor w = ops::slice(p.at(name + ".weight"), 0, begin, begin + count);
  const Tensor y = ops::matmul(x, ops::transpose(w, 0, 1));
  const auto bias = p.find(name + ".bias");
  return bias == p.end() ? y : ops::add(y, ops::slice(bias->second, 0, begin, begin + count));
}

// Row `head` of a parameter as a tensor of one rank less.
Tensor row(const Tensor& t, Index head) {
  const Tensor one = ops::slice(t, 0, head, head + 1);
  return t.rank() == 3 ? ops::reshape(one, {t.size(1), t.size(2)}) : ops::reshape(one, {t.size(1)});
}

// x / √(mean of x² + ε) · gain over the last dimension, of x minus its mean where that is the kind.
Tensor normed(const AttentionConfig& c, Tensor x, const Tensor& gain) {
  if (c.norm == NormKind::layer) x = ops::sub(x, ops::mean(x, 2, true));
  const Tensor power = ops::add(ops::mean(ops::square(x), 2, true), c.norm_epsilon);
  return ops::mul(ops::div(x, ops::sqrt(power)), gain);
}

// Queries or keys of one of `heads` heads, [B, T, D].
Tensor head_of(const AttentionConfig& c, const Parameters& p, const Tensor& x,
               const std::string& name, Index head, Index heads) {
  const Index d = c.head_width ? *c.head_width : c.width / c.heads;
  if (c.qk_norm != QkNorm::full) {
    const Tensor own = project(x, p, name, head * d, d);
    return c.qk_norm == QkNorm::none ? own : normed(c, own, p.at(name + "_norm.weight"));
  }
  const Tensor all = normed(c, project(x, p, name, 0, heads * d), p.at(name + "_norm.weight"));
  return ops::slice(all, 2, head * d, (head + 1) * d);
}

// Pair i turns L · base^(-2i / R) / 2π times within the original L positions. Pairs up to the whole
// one below the i of beta_fast turns are kept, those from the whole one above the i of beta_slow on
// are stretched, between them lies a line.
double yarn(const YarnScaling& s, double base, double plain, Index pair, double rotated) {
  const auto pair_with = [&](double turns) {
    const double angle = 2 * std::numbers::pi * turns / static_cast<double>(s.original_positions);
    return -rotated / 2 * std::log(angle) / std::log(base);
  };
  double first = pair_with(s.beta_fast), last = pair_with(s.beta_slow);
  if (s.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, rotated - 1);
  const auto i = static_cast<double>(pair);
  if (i <= first) return plain;
  return i >= last ? plain / s.factor
                   : plain * (1 - (1 - 1 / s.factor) * (i - first) / (last - first));
}

// YaRN's factor for rotated vectors.
double magnitude(const RopeOptions& o) {
  if (const auto* list = std::get_if<FactorScaling>(&o.scaling)) return list->attention_factor;
  const auto* s = std::get_if<YarnScaling>(&o.scaling);
  if (s == nullptr) return 1;
  if (s->attention_factor) return *s->attention_factor;
  const auto of = [s](double mscale) {
    return s->factor > 1 ? 1 + 0.1 * mscale * std::log(s->factor) : 1;
  };
  return s->mscale > 0 ? of(s->mscale) / of(s->mscale_all_dim) : of(1);
}

// Angles per position of every pair, from the papers' own words: pair i of a YaRN or Llama-3 model
// turns r(i) times within the original context.
double frequency(const RopeOptions& o, Index pair, Index rotated) {
  const double r = static_cast<double>(rotated);
  const double plain = std::pow(o.base, -2.0 * static_cast<double>(pair) / r);
  if (const auto* s = std::get_if<LinearScaling>(&o.scaling)) return plain / s->factor;
  if (const auto* s = std::get_if<FactorScaling>(&o.scaling))
    return plain / s->factors[static_cast<std::size_t>(pair)];
  if (const auto* s = std::get_if<NtkScaling>(&o.scaling))
    return std::pow(o.base * std::pow(s->factor, r / (r - 2)),
                    -2.0 * static_cast<double>(pair) / r);
  if (const auto* s = std::get_if<Llama3Scaling>(&o.scaling)) {
    const double wavelength = 2 * std::numbers::pi / plain;
    const auto original = static_cast<double>(s->original_positions);
    if (wavelength < original / s->high_frequency) return plain;
    if (wavelength > original / s->low_frequency) return plain / s->factor;
    const double smooth =
        (original / wavelength - s->low_frequency) / (s->high_frequency - s->low_frequency);
    return (1 - smooth) * plain / s->factor + smooth * plain;
  }
  if (const auto* s = std::get_if<YarnScaling>(&o.scaling)) return yarn(*s, o.base, plain, pair, r);
  return plain;
}

// y[t] = R(t) x[t] with the whole rotation matrix of every position.
Tensor turned(const Tensor& x, const AttentionConfig& c) {
  const auto* o = std::get_if<RopePosition>(&c.position);
  if (o == nullptr) return x;
  const Index tokens = x.size(1), width = x.size(2);
  const Index rotated = o->rotated == 0 ? width : o->rotated;
  Doubles matrices(static_cast<std::size_t>(tokens * width * width), 0.0);
  const auto at = [&](Index t, Index from, Index to) -> double& {
    return matrices[static_cast<std::size_t>((t * width + from) * width + to)];
  };
  for (Index t = 0; t < tokens; ++t) {
    for (Index i = rotated; i < width; ++i) at(t, i, i) = 1;
    for (Index pair = 0; pair < rotated / 2; ++pair) {
      const bool half = o->pairing == ops::Pairing::half;
      const Index a = half ? pair : 2 * pair, b = half ? pair + rotated / 2 : 2 * pair + 1;
      const double angle = static_cast<double>(t) * frequency(*o, pair, rotated);
      at(t, a, a) = at(t, b, b) = magnitude(*o) * std::cos(angle);
      at(t, a, b) = magnitude(*o) * std::sin(angle);  // row vectors: x1 gives sin to y2
      at(t, b, a) = -magnitude(*o) * std::sin(angle);
    }
  }
  const Tensor rows = ops::reshape(x, {x.size(0), tokens, 1, width});
  const Tensor y = ops::matmul(rows, constant({tokens, width, width}, matrices));
  return ops::reshape(y, {x.size(0), tokens, width});
}

// k^T q and its relatives, scaled. [B, Tq, Tk]
Tensor scores(const AttentionConfig& c, const Parameters& p, const Tensor& x, const Tensor& memory,
              Index head) {
  const Index d = c.head_width ? *c.head_width : c.width / c.heads;
  const Index group = head / (c.heads / c.kv_heads.value_or(c.heads));
  Tensor q = head_of(c, p, x, "q", head, c.heads);
  const Tensor k = head_of(c, p, memory, "k", group, c.kv_heads.value_or(c.heads));
  const Index b = q.size(0), tq = q.size(1), tk = k.size(1);
  double scale = 1;
  Tensor s;
  if (c.score == Score::scaled_dot || c.score == Score::multiplicative) {
    if (c.score == Score::multiplicative)
      q = ops::matmul(q, ops::transpose(row(p.at("score.weight"), head), 0, 1));
    s = ops::matmul(turned(q, c), ops::transpose(turned(k, c), 1, 2));
    scale = 1 / std::sqrt(static_cast<double>(d));
  } else if (c.score == Score::concat) {
    const Tensor w = ops::reshape(row(p.at("score.weight"), head), {2 * d, 1});
    const Tensor of_key = ops::matmul(k, ops::slice(w, 0, 0, d));        // [B, Tk, 1]
    const Tensor of_query = ops::matmul(q, ops::slice(w, 0, d, 2 * d));  // [B, Tq, 1]
    s = ops::add(of_query, ops::reshape(of_key, {b, 1, tk}));
  } else {
    const Tensor wq = row(p.at("score.query"), head), wk = row(p.at("score.key"), group);
    const Index width = wq.size(0);
    const Tensor hidden = ops::tanh(
        ops::add(ops::reshape(ops::matmul(q, ops::transpose(wq, 0, 1)), {b, tq, 1, width}),
                 ops::reshape(ops::matmul(k, ops::transpose(wk, 0, 1)), {b, 1, tk, width})));
    const Tensor w = ops::reshape(row(p.at("score.weight"), head), {width, 1});
    s = ops::reshape(ops::matmul(hidden, w), {b, tq, tk});
  }
  s = ops::scale(s, c.scale != 0 ? c.scale : scale);
  if (c.softcap > 0) s = ops::scale(ops::tanh(ops::scale(s, 1 / c.softcap)), c.softcap);
  return s;
}

// T5's bucket by counting the borders that a distance has passed: with n buckets a side and m =
// n/2, bucket m + e begins at m · (max / m)^(e / (n - m)).
Index bucket(Index distance, const T5Position& t5, bool both) {
  const Index n = both ? t5.buckets / 2 : t5.buckets, m = n / 2;
  const Index length = both ? std::abs(distance) : std::max<Index>(-distance, 0);
  const Index base = both && distance > 0 ? n : 0;
  if (length < m) return base + length;
  Index passed = m;
  for (Index e = 1; e < n - m; ++e) {
    const double border = static_cast<double>(m) *
                          std::pow(static_cast<double>(t5.max_distance) / static_cast<double>(m),
                                   static_cast<double>(e) / static_cast<double>(n - m));
    if (static_cast<double>(length) >= border - 1e-9) passed = m + e;
  }
  return base + passed;
}

// With 2^n heads a geometric series that ends at 2^-8; the heads beyond a power of two take every
// other slope, from the first on, of the series for twice that power.
double alibi_slope(Index head, Index heads) {
  const auto power = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const double place =
      head < power ? static_cast<double>(head + 1) : static_cast<double>(head - power) + 0.5;
  return std::pow(2.0, -8.0 * place / static_cast<double>(power));
}

Tensor with_bias(const Tensor& s, const AttentionConfig& c, const Parameters& p, Index head) {
  const Index tq = s.size(1), tk = s.size(2);
  if (const auto* t5 = std::get_if<T5Position>(&c.position)) {
    Doubles chosen(static_cast<std::size_t>(tq * tk * t5->buckets), 0.0);  // one 1 per pair
    for (Index i = 0; i < tq; ++i)
      for (Index j = 0; j < tk; ++j)
        chosen[static_cast<std::size_t>((i * tk + j) * t5->buckets +
                                        bucket(j - i, *t5, !c.causal || c.prefix))] = 1;
    const Tensor column = ops::slice(p.at("t5.table"), 1, head, head + 1);
    const Tensor bias = ops::matmul(constant({tq * tk, t5->buckets}, chosen), column);
    return ops::add(s, ops::reshape(bias, {tq, tk}));
  }
  if (std::holds_alternative<AlibiPosition>(c.position)) {
    const double slope = alibi_slope(head, c.heads);
    Doubles bias;
    for (Index i = 0; i < tq; ++i)
      for (Index j = 0; j < tk; ++j) bias.push_back(-slope * static_cast<double>(std::abs(i - j)));
    return ops::add(s, constant({tq, tk}, bias));
  }
  return s;
}

// shape: [B, Tq, Tk]
bool sees(const AttentionConfig& c, const Facts& f, const Shape& shape, Index b, Index i, Index j) {
  const auto of = [](const std::vector<Index>& v, Index at) {
    return v[static_cast<std::size_t>(at)];
  };
  if (c.causal && j > i && !(c.prefix && j < of(f.prefix_lengths, b))) return false;
  if (c.look_back && i - j > *c.look_back) return false;
  if (c.look_ahead && j - i > *c.look_ahead) return false;
  if (!f.key_lengths.empty() && j >= of(f.key_lengths, b)) return false;
  return f.documents.empty() ||
         of(f.documents, b * shape[1] + i) == of(f.key_documents, b * shape[2] + j);
}

Tensor visible(const AttentionConfig& c, const Facts& f, const Shape& shape) {
  Doubles v;
  for (Index b = 0; b < shape[0]; ++b)
    for (Index i = 0; i < shape[1]; ++i)
      for (Index j = 0; j < shape[2]; ++j) v.push_back(sees(c, f, shape, b, i, j) ? 1 : 0);
  return constant(shape, v);
}

// The largest visible score of each query, and the sink if it is larger; 0 where there is none. A
// constant, because weights do not depend on it: it keeps exp in range. [B, Tq, 1]
Tensor largest_score(const Tensor& s, const Tensor& seen, const Tensor& sink) {
  const Doubles scores = s.detach().to_vector<double>(), visible = seen.to_vector<double>();
  const auto keys = static_cast<std::size_t>(s.size(2));
  Doubles largest;
  for (std::size_t row = 0; row < scores.size(); row += keys) {
    double m = sink.defined() ? sink.detach().to_vector<double>().front() : -HUGE_VAL;
    for (std::size_t j = row; j < row + keys; ++j)
      if (visible[j] != 0) m = std::max(m, scores[j]);
    largest.push_back(std::isfinite(m) ? m : 0);
  }
  return constant({s.size(0), s.size(1), 1}, largest);
}

}  // namespace

Tensor weights(const AttentionConfig& c, const Parameters& p, const Tensor& x, const Tensor& memory,
               const Facts& facts, Index head) {
  const Tensor s = with_bias(scores(c, p, x, memory, head), c, p, head);
  const bool softmax = c.normaliser == ops::Normaliser::softmax;
  const Tensor seen = visible(c, facts, s.shape());
  const Tensor sink = c.sinks ? ops::slice(p.at("sinks"), 0, head, head + 1) : Tensor();
  Tensor each, total;
  if (softmax) {
    const Tensor m = largest_score(s, seen, sink);
    // A score that is not seen may be far above m: it counts as m, and then not at all.
    each = ops::mul(ops::exp(ops::mul(ops::sub(s, m), seen)), seen);
    total = ops::sum(each, 2, true);
    if (c.sinks) total = ops::add(total, ops::exp(ops::sub(sink, m)));
  } else {
    each = ops::mul(ops::relu(s), seen);
    total = ops::sum(each, 2, true);
  }
  return ops::div(each, ops::maximum(total, Tensor::scalar(1e-300, DType::f64)));
}

Tensor attention(const AttentionConfig& c, const Parameters& p, const Tensor& x,
                 const Tensor& memory, const Facts& facts) {
  const Index d = c.head_width ? *c.head_width : c.width / c.heads;
  std::vector<Tensor> mixed;
  for (Index head = 0; head < c.heads; ++head) {
    const Index group = head / (c.heads / c.kv_heads.value_or(c.heads));
    mixed.push_back(
        ops::matmul(weights(c, p, x, memory, facts, head), project(memory, p, "v", group * d, d)));
  }
  return project(ops::concat(mixed, 2), p, "out", 0, c.width);
}

Tensor sine_waves(Index tokens, Index width) {
  Doubles v;
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < width; ++i) {
      const double rate = std::exp(-std::log(10000.0) * static_cast<double>(i - i % 2) /
                                   static_cast<double>(width));
      const double angle = static_cast<double>(t) * rate;
      v.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return constant({tokens, width}, v);
}

}  // namespace heddle::nn::book
