#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "language/language.h"
#include "model/parts/head.h"
#include "nn/attention/attention.h"
#include "nn/attention/definition.h"
#include "nn/norm/norm.h"
#include "nn/rnn/elman.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/norm/norm.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::check {

namespace {

constexpr std::int64_t kBatch = 2;
// Longer than the kernels' blocks of queries (96 and 192), of keys (192) and of cached keys (128).
constexpr std::int64_t kTokens = 197, kMemory = 131;
constexpr std::array<std::int64_t, kBatch> kPrefixes = {100, 33};
// Of each sequence. They end within the kernels' blocks, and none is padding alone.
constexpr std::array<std::int64_t, kBatch> kDocumentLengths = {37, 110};

// A part of a model as it is run: leaves of the tape, and what was made of them.
struct Run {
  std::vector<Named> leaves;
  std::vector<Tensor> outputs;
};
// In which type, and how far its inputs and weights are moved.
struct Numbers {
  DType dtype = DType::f64;
  Jitter jitter = {};
};
using Part = std::function<Run(const Numbers&)>;

// Outputs, and gradients of the leaves for random cotangents.
std::vector<Named> results_of(const Part& part, const Numbers& numbers) {
  Tape tape;
  const Run run = part(numbers);
  std::vector<Tensor> cotangents;
  cotangents.reserve(run.outputs.size());
  std::uint32_t stream = 40;
  for (const Tensor& y : run.outputs)
    cotangents.push_back(y.elements() == 1 ? Tensor::full(y.shape(), 1, y.dtype())
                                           : normal(y.shape(), 1, ++stream, y.dtype()));
  tape.backward(run.outputs, cotangents);
  std::vector<Named> all;
  all.reserve(run.outputs.size() + run.leaves.size());
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    all.push_back({tr("result {}", i), run.outputs[i].detach(), "result"});
  for (const Named& leaf : run.leaves)
    all.push_back({"gradient." + leaf.name, leaf.value.grad(), leaf.group});
  return all;
}

// An input, or a weight that no layer has. value: f32
Named leaf(const std::string& name, const Tensor& value, const Numbers& numbers, DType dtype) {
  Tensor own = ops::clone(ops::cast(value.detach(), dtype));
  numbers.jitter.move(own, 1000u + static_cast<unsigned char>(name.front()));
  own.set_requires_grad(true);
  return {name, own, "inputs"};
}
Named leaf(const std::string& name, const Tensor& value, const Numbers& numbers) {
  return leaf(name, value, numbers, numbers.dtype);
}

struct Comparison {
  std::string path;
  Part fast, definition;
  Way way;
  bool attends = false;
  // Whether tolerances follow the spread. Not where relu jumps, which moved inputs fall over and
  // exact ones do not.
  bool measured = true;
  bool bf16 = true;  // whether rounding to bf16 can be told from a fault
};

void compare(const Subject& subject, const Comparison& c, Report& report) {
  reference_setting().use();
  const std::vector<Named> truth = results_of(c.definition, {});
  Spreads spreads;
  if (c.measured)
    spreads = measure_spreads(
        [&c](const Jitter& jitter) { return results_of(c.fast, {DType::f64, jitter}); });
  for (const Setting& s : all_settings(subject)) {
    // That threads change nothing is for check_passes() to say.
    if (s.threads !=
        (s.isa == cpu::available_isas().back() ? subject.threads.back() : subject.threads.front()))
      continue;
    if (c.attends && !comparable(subject.config, s.dtype)) continue;
    if (!c.bf16 && s.dtype == DType::bf16) continue;
    subject.progress(tr("{}: {} {}", tr(c.path), to_string(s.dtype), cpu::to_string(s.isa)));
    s.use();
    add_case(report, c.path, s, differences_of(results_of(c.fast, {s.dtype}), truth),
             {c.way, c.measured ? &spreads : nullptr});
  }
}

// The parameters of a layer, by name, in the order in which it asks for them.
template <class Layer, class Config>
Weights weights_of(const Config& config) {
  nn::Parameters store(nn::ParameterOptions{.seed = 3});
  const Layer layer(config, store.root());
  return random_weights(store);
}

std::vector<Named> leaves_of(const nn::Parameters& store, const Numbers& numbers) {
  std::vector<Named> all;
  for (const nn::Parameter& p : store.all()) {
    numbers.jitter.move(p.tensor, static_cast<std::uint32_t>(all.size()));
    all.push_back({p.name, p.tensor, "parameters"});
  }
  return all;
}

nn::ParameterOptions options_of(const Weights& weights, DType dtype) {
  return {.dtype = parameter_type(dtype), .source = source_of(weights)};
}

// Keys that are padding.
std::vector<std::int64_t> key_lengths(std::int64_t keys) { return {keys, keys - 30}; }

// Of each token, [kBatch · kTokens]; nothing where there is one in a sequence.
std::vector<std::int64_t> documents_of(const Subject& subject, bool cross) {
  std::vector<std::int64_t> all;
  if (!subject.documents || cross) return all;
  for (const std::int64_t length : kDocumentLengths)
    for (std::int64_t token = 0; token < kTokens; ++token) all.push_back(token / length);
  return all;
}

nn::AttentionConfig longer(nn::AttentionConfig a) {
  // The windows of the reduced model are for its short context.
  for (auto* reach : {&a.look_back, &a.look_ahead})
    if (*reach && **reach > 0) *reach = **reach * 5;
  if (auto* learned = std::get_if<nn::LearnedPosition>(&a.position)) learned->positions = kTokens;
  a.dropout = 0;  // the definition has none
  return a;
}

Comparison attention_comparison(const Subject& subject, const nn::AttentionConfig& config,
                                const std::string& path) {
  const nn::AttentionConfig a = longer(config);
  const auto weights = std::make_shared<const Weights>(weights_of<nn::Attention>(a));
  const Tensor x = normal({kBatch, kTokens, a.width}, 1, 11, DType::f32);
  const Tensor memory = normal({kBatch, kMemory, a.width}, 1, 12, DType::f32);
  const std::vector<std::int64_t> lengths = key_lengths(a.cross ? kMemory : kTokens);
  const std::vector<std::int64_t> documents = documents_of(subject, a.cross);
  // The gradient of a key or value that several heads share is the sum of theirs.
  const std::int64_t terms = kBatch * kTokens * (a.heads / a.key_heads());
  Comparison c{path, {}, {}, way_through_part(16, subject.config, terms)};
  c.attends = true;
  c.way.kinks = a.normaliser == ops::Normaliser::relu;
  c.fast = [=](const Numbers& numbers) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const nn::Attention layer(a, store.root());
    Run run{leaves_of(store, numbers), {}};
    run.leaves.push_back(leaf("x", x, numbers));
    nn::AttentionCall call;
    call.key_lengths = Tensor::from<std::int64_t>({kBatch}, std::span(lengths));
    if (a.prefix) call.prefix_lengths = Tensor::from<std::int64_t>({kBatch}, std::span(kPrefixes));
    if (!documents.empty())
      call.documents = Tensor::from<std::int64_t>({kBatch, kTokens}, std::span(documents));
    const Tensor input = run.leaves.back().value;
    if (a.cross) {
      run.leaves.push_back(leaf("memory", memory, numbers));
      call.memory = run.leaves.back().value;
    }
    run.outputs.push_back(layer.forward(input, call));
    return run;
  };
  c.definition = [=](const Numbers& numbers) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const nn::Attention layer(a, store.root());  // for its names alone
    Run run{leaves_of(store, numbers), {}};
    nn::book::Parameters parameters;
    for (const Named& p : run.leaves) parameters.emplace(p.name, p.value);
    run.leaves.push_back(leaf("x", x, numbers));
    const Tensor input = run.leaves.back().value;
    if (a.cross) run.leaves.push_back(leaf("memory", memory, numbers));
    nn::book::Facts facts;
    facts.key_lengths = lengths;
    if (a.prefix) facts.prefix_lengths.assign(kPrefixes.begin(), kPrefixes.end());
    facts.documents = facts.key_documents = documents;
    run.outputs.push_back(
        nn::book::attention(a, parameters, input, run.leaves.back().value, facts));
    return run;
  };
  return c;
}

Comparison norm_comparison(const Subject& subject) {
  const nn::NormConfig n = model::norm_config(subject.config);
  const auto weights = std::make_shared<const Weights>(weights_of<nn::Norm>(n));
  // Small, so that the epsilon counts.
  const Tensor x = normal({kBatch, kTokens, n.width}, 0.01, 13, DType::f32);
  const Tensor stream = normal({kBatch, kTokens, n.width}, 0.01, 14, DType::f32);
  Comparison c{
      mark("norm, by definition"), {}, {}, way_through_part(3, subject.config, kBatch * kTokens)};
  const auto run_of = [=](const Numbers& numbers, const auto& join) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const nn::Norm layer(n, store.root());
    Run run{leaves_of(store, numbers), {}};
    const Tensor gain = run.leaves[0].value;
    const Tensor bias = run.leaves.size() > 1 ? run.leaves[1].value : Tensor();
    run.leaves.push_back(leaf("x", x, numbers));
    run.leaves.push_back(leaf("stream", stream, numbers));
    const std::size_t last = run.leaves.size() - 1;
    const ops::NormResidual joined =
        join(layer, run.leaves[last - 1].value, run.leaves[last].value, gain, bias);
    run.outputs = {joined.sum, joined.y};
    return run;
  };
  c.fast = [=](const Numbers& numbers) {
    return run_of(numbers, [](const nn::Norm& layer, const Tensor& branch, const Tensor& sum,
                              const Tensor&, const Tensor&) { return layer.join(branch, sum); });
  };
  c.definition = [=](const Numbers& numbers) {
    return run_of(numbers, [n](const nn::Norm&, const Tensor& branch, const Tensor& sum,
                               const Tensor& gain, const Tensor& bias) {
      if (n.kind == nn::NormKind::rms)
        return ops::reference::add_rms_norm(branch, sum, gain, n.epsilon);
      return ops::reference::add_layer_norm(branch, sum, gain, bias, n.epsilon);
    });
  };
  return c;
}

// f of out(f(in(x))), or of the gate in out(f(gate(x)) · up(x)): in the papers' own words.
Tensor bent(const nn::FfnConfig& f, const Tensor& h) {
  using nn::FfnKind;
  const auto by_sigmoid = [](const Tensor& x, double slope) {
    return ops::mul(x, ops::sigmoid(ops::scale(x, slope)));
  };
  switch (f.kind) {
    case FfnKind::none: break;
    case FfnKind::relu: return ops::relu(h);
    case FfnKind::relu2: return ops::square(ops::relu(h));
    case FfnKind::gelu:
    case FfnKind::geglu: return ops::gelu(h);
    case FfnKind::gelu_tanh:
    case FfnKind::geglu_tanh: return ops::gelu_tanh(h);
    case FfnKind::quick_gelu:
    case FfnKind::swiglu_clamped: return by_sigmoid(h, 1.702);
    case FfnKind::silu:
    case FfnKind::swiglu: return by_sigmoid(h, 1);
  }
  return h;
}

// h = [gate | up]
Tensor gated(const nn::FfnConfig& f, const Tensor& h) {
  const std::int64_t hidden = f.hidden;
  Tensor gate = ops::slice(h, -1, 0, hidden), up = ops::slice(h, -1, hidden, 2 * hidden);
  if (f.kind == nn::FfnKind::swiglu_clamped) {
    const Tensor limit = Tensor::scalar(f.clamp, h.dtype());
    const auto at_most = [&](const Tensor& x) {
      return ops::neg(ops::maximum(ops::neg(x), ops::neg(limit)));
    };
    gate = at_most(gate);
    up = ops::add(ops::maximum(at_most(up), ops::neg(limit)), 1);
  }
  return ops::mul(bent(f, gate), up);
}

Tensor feed_forward(const nn::FfnConfig& f, const nn::book::Parameters& p, const Tensor& x) {
  const auto bias = [&](const char* name) { return f.bias ? p.find(name)->second : Tensor(); };
  Tensor h = ops::reference::linear(x, p.find("in.weight")->second, bias("in.bias"), {});
  h = nn::is_gated(f.kind) ? gated(f, h) : bent(f, h);
  return ops::reference::linear(h, p.find("out.weight")->second, bias("out.bias"), {});
}

Comparison ffn_comparison(const Subject& subject) {
  const nn::FfnConfig f = model::ffn_config(subject.config);
  const auto weights = std::make_shared<const Weights>(weights_of<nn::FeedForward>(f));
  const Tensor x = normal({kBatch, kTokens, f.width}, 1, 16, DType::f32);
  Comparison c{mark("feed-forward, by definition"),
               {},
               {},
               way_through_part(4, subject.config, kBatch * kTokens)};
  c.measured = !bends_sharply(f.kind);
  // Rounding never changes the side of 0 that a number is on, where relu bends; it does carry
  // numbers over another limit, and gradients jump there.
  c.bf16 = f.kind != nn::FfnKind::swiglu_clamped;
  const auto run_of = [=](const Numbers& numbers, bool fast) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const nn::FeedForward layer(f, store.root());
    Run run{leaves_of(store, numbers), {}};
    nn::book::Parameters parameters;
    for (const Named& p : run.leaves) parameters.emplace(p.name, p.value);
    run.leaves.push_back(leaf("x", x, numbers));
    const Tensor input = run.leaves.back().value;
    run.outputs = {fast ? layer.forward(input) : feed_forward(f, parameters, input)};
    return run;
  };
  c.fast = [=](const Numbers& numbers) { return run_of(numbers, true); };
  c.definition = [=](const Numbers& numbers) { return run_of(numbers, false); };
  return c;
}

// The same of the function between a classifier's two layers.
Tensor bent(model::HeadTransform function, const Tensor& h) {
  using model::HeadTransform;
  switch (function) {
    case HeadTransform::none: return h;
    case HeadTransform::tanh: return ops::add(ops::scale(ops::sigmoid(ops::scale(h, 2)), 2), -1);
    case HeadTransform::relu: return bent({.kind = nn::FfnKind::relu}, h);
    case HeadTransform::gelu: return bent({.kind = nn::FfnKind::gelu}, h);
    case HeadTransform::gelu_tanh: return bent({.kind = nn::FfnKind::gelu_tanh}, h);
    case HeadTransform::quick_gelu: return bent({.kind = nn::FfnKind::quick_gelu}, h);
    case HeadTransform::silu: return bent({.kind = nn::FfnKind::silu}, h);
  }
  return h;
}

Tensor first_head_layer(const model::ModelConfig& m, const nn::book::Parameters& p,
                        const Tensor& x) {
  const auto found = [&](const char* name) {
    const auto at = p.find(name);
    return at == p.end() ? Tensor() : at->second;
  };
  Tensor h = bent(m.head_transform, ops::reference::linear(x, found("head_transform.weight"),
                                                           found("head_transform.bias"), {}));
  if (!m.head_norm) return h;
  const nn::NormConfig n = model::norm_config(m);
  const Tensor gain = found("head_norm.weight");
  if (n.kind == nn::NormKind::rms) return ops::reference::rms_norm(h, gain, n.epsilon);
  return ops::reference::layer_norm(h, gain, found("head_norm.bias"), n.epsilon);
}

Comparison head_layer_comparison(const Subject& subject) {
  const model::ModelConfig m = subject.config;
  const auto weights = std::make_shared<const Weights>(weights_of<model::HeadLayer>(m));
  const Tensor x = normal({kBatch, kTokens, m.pooled_width()}, 1, 21, DType::f32);
  Comparison c{mark("classifier's first layer, by definition"),
               {},
               {},
               way_through_part(4, subject.config, kBatch * kTokens)};
  c.measured = m.head_transform != model::HeadTransform::relu;
  const auto run_of = [=](const Numbers& numbers, bool fast) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const model::HeadLayer layer(m, store.root());
    Run run{leaves_of(store, numbers), {}};
    nn::book::Parameters parameters;
    for (const Named& p : run.leaves) parameters.emplace(p.name, p.value);
    run.leaves.push_back(leaf("x", x, numbers));
    const Tensor input = run.leaves.back().value;
    run.outputs = {fast ? layer.forward(input) : first_head_layer(m, parameters, input)};
    return run;
  };
  c.fast = [=](const Numbers& numbers) { return run_of(numbers, true); };
  c.definition = [=](const Numbers& numbers) { return run_of(numbers, false); };
  return c;
}

// Every seventh target counts for nothing.
Tensor with_ignored(Tensor targets) {
  auto* ids = targets.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < targets.elements(); i += 7)
    ids[i] = static_cast<std::int32_t>(model::kIgnore);
  return targets;
}

// The last product and its loss, without the logits ever being stored.
Comparison classifier_comparison(const Subject& subject) {
  const model::ModelConfig& m = subject.config;
  const bool labels = m.sizes.classes > 0;
  const std::int64_t classes = labels ? m.sizes.classes : m.vocabulary_of_target();
  const bool pooled = labels && m.head_transform == model::HeadTransform::none;
  const std::int64_t width = pooled ? m.pooled_width() : m.width;
  const Tensor x = normal({kBatch, kTokens, width}, 1, 17, DType::f32);
  const Tensor weight =
      normal({classes, width}, 1 / std::sqrt(static_cast<double>(width)), 18, DType::f32);
  const Tensor bias = normal({classes}, 0.3, 19, DType::f32);
  const Tensor targets = with_ignored(random_ids({kBatch, kTokens}, classes, 20));
  Comparison c{mark("classifier, by definition"),
               {},
               {},
               way_through_part(3, subject.config, kBatch * kTokens)};
  ops::CrossEntropyOptions options;
  options.ignore_index = model::kIgnore;
  options.label_smoothing = subject.label_smoothing;
  const auto run_of = [=](const Numbers& numbers, const auto& loss) {
    const DType own = parameter_type(numbers.dtype);
    Run run{{leaf("x", x, numbers), leaf("weight", weight, numbers, own)}, {}};
    if (m.head_bias.value_or(labels && m.bias))
      run.leaves.push_back(leaf("bias", bias, numbers, own));
    const Tensor b = run.leaves.size() > 2 ? run.leaves[2].value : Tensor();
    run.outputs = {loss(run.leaves[0].value, run.leaves[1].value, b)};
    return run;
  };
  c.fast = [=](const Numbers& numbers) {
    return run_of(numbers, [&](const Tensor& in, const Tensor& w, const Tensor& b) {
      const model::Head head(m, nn::Linear(w, b));
      return head.loss(in, targets, options.label_smoothing, {}).task;
    });
  };
  c.definition = [=](const Numbers& numbers) {
    return run_of(numbers, [&](const Tensor& in, const Tensor& w, const Tensor& b) {
      Tensor z = ops::reference::linear(ops::scale(in, m.logit_scale), w, b, {});
      if (const double cap = m.logit_softcap; cap > 0)
        z = ops::scale(ops::tanh(ops::scale(z, 1 / cap)), cap);
      return ops::reference::cross_entropy(z, targets, options);
    });
  };
  return c;
}

Comparison recurrence_comparison(const Subject& subject) {
  const std::int64_t tokens = std::min<std::int64_t>(subject.config.sizes.context, 24);
  const nn::ElmanConfig e{subject.config.width, subject.config.width, subject.config.bias};
  const auto weights = std::make_shared<const Weights>(weights_of<nn::ElmanLayer>(e));
  const Tensor x = normal({kBatch, tokens, e.inputs}, 1, 15, DType::f32);
  const std::vector<std::int64_t> lengths = {tokens, std::max<std::int64_t>(tokens - 5, 1)};
  const bool reverse = subject.config.kind != model::Kind::rnn;
  Comparison c{
      mark("recurrence, by definition"),
      {},
      {},
      way_through_part(3 + static_cast<double>(tokens) / 4, subject.config, kBatch * tokens)};
  const auto run_of = [=](const Numbers& numbers, bool fast) {
    nn::Parameters store(options_of(*weights, numbers.dtype));
    const nn::ElmanLayer layer(e, store.root());
    Run run{leaves_of(store, numbers), {}};
    std::map<std::string, Tensor> by_name;
    for (const Named& p : run.leaves) by_name[p.name] = p.value;
    run.leaves.push_back(leaf("x", x, numbers));
    ops::ElmanOptions options;
    options.lengths = Tensor::from<std::int64_t>({kBatch}, std::span(lengths));
    options.reverse = reverse;
    const Tensor input = run.leaves.back().value;
    const Tensor bias = e.bias ? by_name["in.bias"] : Tensor();
    const ops::ElmanResult r =
        fast ? layer.forward(input, options)
             : ops::reference::elman(ops::reference::linear(input, by_name["in.weight"], bias, {}),
                                     by_name["recurrent.weight"], options);
    run.outputs = {r.y, r.last};
    return run;
  };
  c.fast = [=](const Numbers& numbers) { return run_of(numbers, true); };
  c.definition = [=](const Numbers& numbers) { return run_of(numbers, false); };
  return c;
}

}  // namespace

void check_definitions(const Subject& subject, Report& report) {
  const model::ModelConfig& m = subject.config;
  const bool pair = m.kind == model::Kind::encoder_decoder;
  const auto attention = [&](const nn::AttentionConfig& a, const char* path) {
    compare(subject, attention_comparison(subject, a, path), report);
  };
  if (!m.recurrent())
    for (const auto& a : model::self_attentions(m, pair || m.kind == model::Kind::decoder))
      attention(a, mark("attention, by definition"));
  if (pair)
    for (const auto& a : model::self_attentions(m, false))
      attention(a, mark("encoder's attention, by definition"));
  if (m.two_stacks()) attention(model::cross_attention(m), mark("cross-attention, by definition"));
  if (!m.recurrent() || m.residual) compare(subject, norm_comparison(subject), report);
  if (!m.recurrent() && m.ffn != nn::FfnKind::none)
    compare(subject, ffn_comparison(subject), report);  // of an expert with moe
  if (m.recurrent()) compare(subject, recurrence_comparison(subject), report);
  if (m.head_transform != model::HeadTransform::none)
    compare(subject, head_layer_comparison(subject), report);
  compare(subject, classifier_comparison(subject), report);
}

}  // namespace heddle::check
