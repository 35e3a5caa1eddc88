// Wrong calls of ops: each must throw an Error that names the op, the argument, what was expected
// and what was found. Nothing aborts, nothing is silently accepted.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "heddle/runtime.h"
#include "heddle/tape.h"

namespace heddle {
namespace {

struct BadCall {
  std::string op;        // Error::where()
  std::string argument;  // part of the message
  std::function<void()> call;
};

Tensor f32(const Shape& shape) { return Tensor::full(shape, 0.5); }
Tensor bf(const Shape& shape) { return Tensor::full(shape, 0.5, DType::bf16); }
Tensor half(const Shape& shape) { return Tensor::full(shape, 0.5, DType::f16); }
Tensor i64(const Shape& shape, double value = 0) { return Tensor::full(shape, value, DType::i64); }
Tensor meta(const Shape& shape) { return Tensor::empty(shape, DType::f32, Device::meta); }
const Tensor none;

std::vector<BadCall> elementwise() {
  return {
      {"relu", "argument x", [] { (void)ops::relu(none); }},
      {"gelu", "argument x", [] { (void)ops::gelu(i64({2})); }},
      {"exp", "argument x", [] { (void)ops::exp(Tensor::zeros({2}, DType::u8)); }},
      {"softcap", "argument cap", [] { (void)ops::softcap(f32({2}), 0); }},
      {"softcap", "argument cap", [] { (void)ops::softcap(f32({2}), -3); }},
      {"softcap", "argument cap",
       [] { (void)ops::softcap(f32({2}), std::numeric_limits<double>::infinity()); }},
      {"Tensor::full", "does not fit", [] { (void)Tensor::full({2}, 300, DType::u8); }},
      {"add", "argument b", [] { (void)ops::add(f32({2}), bf({2})); }},
      {"add", "broadcast", [] { (void)ops::add(f32({2, 3}), f32({2})); }},
      {"mul", "argument a", [] { (void)ops::mul(none, f32({2})); }},
      {"mul", "argument b", [] { (void)ops::mul(f32({2}), none); }},
      {"div", "argument b", [] { (void)ops::div(f32({2}), meta({2})); }},
      {"add_into", "argument x",
       [] {
         Tensor t = f32({3});
         ops::add_into(t, f32({2}));
       }},
      {"copy_into", "argument src",
       [] {
         Tensor t = f32({3});
         ops::copy_into(t, f32({2}));
       }},
      {"cast", "argument x", [] { (void)ops::cast(none, DType::f32); }},
      {"dropout", "argument p", [] { (void)ops::dropout(f32({2}), 1.5, {}); }},
      {"dropout", "argument p", [] { (void)ops::dropout(f32({2}), -0.1, {}); }},
      {"dropout", "argument x", [] { (void)ops::dropout(i64({2}), 0.5, {}); }},
      {"glu", "argument up", [] { (void)ops::glu(f32({2, 4}), f32({2, 3})); }},
      {"glu", "argument", [] { (void)ops::glu(f32({2, 5})); }},
  };
}

std::vector<BadCall> shapes() {
  return {
      {"reshape", "elements", [] { (void)ops::reshape(f32({4}), {3}); }},
      {"transpose", "dimension", [] { (void)ops::transpose(f32({4}), 0, 1); }},
      {"slice", "range", [] { (void)ops::slice(f32({4}), 0, 2, 9); }},
      {"permute", "permutation",
       [] {
         const std::vector<int> order = {0, 0};
         (void)ops::permute(f32({4, 2}), order);
       }},
      {"broadcast", "larger", [] { (void)ops::broadcast_to(f32({4, 2}), {2}); }},
      {"concat", "argument",
       [] {
         const std::vector<Tensor> parts = {f32({2, 3}), f32({2, 4})};
         (void)ops::concat(parts, 0);
       }},
      {"concat", "argument", [] { (void)ops::concat(std::vector<Tensor>{}, 0); }},
      {"concat", "argument parts[1]",
       [] {
         const std::vector<Tensor> parts = {f32({2}), bf({2})};
         (void)ops::concat(parts, 0);
       }},
      {"split", "argument sizes",
       [] {
         const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
         const std::vector<std::int64_t> sizes = {huge, huge, 6};
         (void)ops::split(f32({4}), sizes, 0);
       }},
      {"split", "argument sizes",
       [] {
         const std::vector<std::int64_t> sizes = {2, 3};
         (void)ops::split(f32({4}), sizes, 0);
       }},
      {"sum", "dimension", [] { (void)ops::sum(f32({4}), 1); }},
      {"mean", "argument x", [] { (void)ops::mean(f32({2, 0}), 1); }},
      {"max", "argument x", [] { (void)ops::max(f32({0}), 0); }},
      {"sum_to", "argument x", [] { (void)ops::sum_to(f32({1, 3}), {2, 3}); }},
      {"mean_all", "argument x", [] { (void)ops::mean_all(f32({0})); }},
  };
}

std::vector<BadCall> matrices() {
  return {
      {"matmul", "argument b", [] { (void)ops::matmul(f32({2, 3}), f32({4, 5})); }},
      {"matmul", "argument b", [] { (void)ops::matmul(f32({2, 3}), bf({3, 5})); }},
      {"matmul", "argument a", [] { (void)ops::matmul(f32({3}), f32({3, 5})); }},
      {"matmul", "broadcast", [] { (void)ops::matmul(f32({2, 2, 3}), f32({3, 3, 5})); }},
      {"linear", "argument weight", [] { (void)ops::linear(f32({2, 3}), f32({5, 4})); }},
      {"linear", "argument weight", [] { (void)ops::linear(f32({2, 3}), i64({5, 3})); }},
      {"linear", "argument bias", [] { (void)ops::linear(f32({2, 3}), f32({5, 3}), f32({4})); }},
      {"linear", "argument residual",
       [] {
         (void)ops::linear(f32({2, 3}), f32({5, 3}), {}, {ops::Activation::none, f32({2, 4})});
       }},
      {"linear", "argument weight", [] { (void)ops::linear(f32({2, 3}), half({5, 3})); }},
      {"linear", "argument weight", [] { (void)ops::linear(f32({2, 3}), meta({5, 3})); }},
      {"patch_embed", "argument",
       [] { (void)ops::patch_embed(f32({1, 3, 9, 8}), f32({4, 3, 4, 4}), {}); }},
      {"patch_embed", "argument weight",
       [] { (void)ops::patch_embed(f32({1, 3, 8, 8}), f32({4, 2, 4, 4}), {}); }},
      {"patch_embed", "argument images",
       [] { (void)ops::patch_embed(f32({3, 8, 8}), f32({4, 3, 4, 4}), {}); }},
      {"linear_cross_entropy", "argument targets",
       [] { (void)ops::linear_cross_entropy(f32({2, 3}), f32({5, 3}), {}, i64({2}, 5), {}); }},
      {"linear_cross_entropy", "argument targets",
       [] { (void)ops::linear_cross_entropy(f32({2, 3}), f32({5, 3}), {}, i64({3}), {}); }},
      {"linear_cross_entropy", "argument targets",
       [] { (void)ops::linear_cross_entropy(f32({2, 3}), f32({5, 3}), {}, f32({2}), {}); }},
      {"linear_cross_entropy", "argument weight",
       [] { (void)ops::linear_cross_entropy(f32({2, 3}), f32({5, 4}), {}, i64({2}), {}); }},
      {"linear_cross_entropy", "argument label_smoothing",
       [] {
         ops::CrossEntropyOptions o;
         o.label_smoothing = 1.5;
         (void)ops::linear_cross_entropy(f32({2, 3}), f32({5, 3}), {}, i64({2}), o);
       }},
      {"nll_loss", "argument targets", [] { (void)ops::nll_loss(f32({2, 3}), i64({2}, 3), {}); }},
      {"cross_entropy", "argument targets",
       [] { (void)ops::cross_entropy(f32({2, 3}), i64({2}, -1), {}); }},
  };
}

std::vector<BadCall> rows() {
  return {
      {"rms_norm", "argument gain", [] { (void)ops::rms_norm(f32({2, 3}), f32({4}), 1e-5); }},
      {"rms_norm", "argument gain", [] { (void)ops::rms_norm(bf({2, 3}), bf({3}), 1e-5); }},
      {"rms_norm", "argument x", [] { (void)ops::rms_norm(f32({}), none, 1e-5); }},
      {"rms_norm", "argument eps", [] { (void)ops::rms_norm(f32({2, 3}), none, -1); }},
      {"layer_norm", "argument bias",
       [] { (void)ops::layer_norm(f32({2, 3}), f32({3}), f32({2}), 1e-5); }},
      {"add_layer_norm", "argument residual",
       [] { (void)ops::add_layer_norm(f32({2, 3}), f32({3}), none, none, 1e-5); }},
      {"add_rms_norm", "argument residual",
       [] { (void)ops::add_rms_norm(f32({2, 3}), bf({2, 3}), none, 1e-5); }},
      {"softmax", "argument x", [] { (void)ops::softmax(f32({})); }},
      {"log_softmax", "argument x", [] { (void)ops::log_softmax(i64({3})); }},
      {"mean_pool", "argument mask", [] { (void)ops::mean_pool(f32({2, 3, 4}), i64({2, 4})); }},
      {"mean_pool", "argument mask", [] { (void)ops::mean_pool(f32({2, 3, 4}), f32({2, 3})); }},
      {"mean_pool", "argument x", [] { (void)ops::mean_pool(f32({3, 4}), none); }},
  };
}

std::vector<BadCall> indices() {
  return {
      {"embedding", "argument ids",
       [] { (void)ops::embedding(f32({4, 2}), i64({3}, 4), DType::f32); }},
      {"embedding", "argument ids",
       [] { (void)ops::embedding(f32({4, 2}), i64({3}, -1), DType::f32); }},
      {"embedding", "argument ids",
       [] { (void)ops::embedding(f32({4, 2}), f32({3}), DType::f32); }},
      {"embedding", "argument table", [] { (void)ops::embedding(f32({4}), i64({3}), DType::f32); }},
      {"embedding", "argument out",
       [] { (void)ops::embedding(f32({4, 2}), i64({3}), DType::i32); }},
      {"gather", "argument index", [] { (void)ops::gather(f32({3, 2}), 0, i64({3, 2}, 3)); }},
      {"gather", "argument index", [] { (void)ops::gather(f32({3, 2}), 0, i64({3})); }},
      {"scatter_add", "argument source",
       [] { (void)ops::scatter_add(f32({3, 2}), 0, i64({3, 2}), f32({1, 1})); }},
      {"index_select", "argument index", [] { (void)ops::index_select(f32({3, 2}), i64({2}, 7)); }},
      {"rope", "argument",
       [] { (void)ops::rope(f32({1, 9, 2, 4}), f32({8, 2}), f32({8, 2}), {}); }},
      {"rope", "argument",
       [] { (void)ops::rope(f32({1, 4, 2, 4}), f32({8, 3}), f32({8, 3}), {}); }},
      {"rope", "argument sin",
       [] { (void)ops::rope(f32({1, 4, 2, 4}), f32({8, 2}), f32({8, 1}), {}); }},
      {"rope", "argument x", [] { (void)ops::rope(f32({4, 2, 4}), f32({8, 2}), f32({8, 2}), {}); }},
  };
}

std::vector<BadCall> optimizers() {
  return {
      {"adamw", "argument grad",
       [] {
         Tensor w = f32({3}), m = f32({3}), v = f32({3});
         ops::AdamWOptions o;
         o.step = 1;
         ops::adamw(w, f32({2}), m, v, o);
       }},
      {"adamw", "argument step",
       [] {
         Tensor w = f32({3}), m = f32({3}), v = f32({3});
         ops::AdamWOptions o;
         o.step = 0;
         ops::adamw(w, f32({3}), m, v, o);
       }},
      {"adamw", "argument weight",
       [] {
         Tensor w = bf({3}), m = f32({3}), v = f32({3});
         ops::AdamWOptions o;
         o.step = 1;
         ops::adamw(w, f32({3}), m, v, o);
       }},
      {"sgd", "argument",
       [] {
         Tensor w = f32({3}), m = f32({2});
         ops::sgd(w, f32({3}), m, {});
       }},
      {"global_norm", "argument",
       [] {
         const std::vector<Tensor> grads = {f32({2}), i64({2})};
         (void)ops::global_norm(grads);
       }},
  };
}

// Numbers instead of tensors.
std::vector<BadCall> numbers() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"random_uniform", "argument dtype",
       [] { (void)ops::random_uniform({2}, 0, 1, {}, DType::i32); }},
      {"random_uniform", "argument low", [nan] { (void)ops::random_uniform({2}, nan, 1, {}); }},
      {"random_uniform", "argument high", [] { (void)ops::random_uniform({2}, 1, 0, {}); }},
      {"random_normal", "argument stddev", [] { (void)ops::random_normal({2}, 0, -1, {}); }},
      {"random_normal", "argument mean", [nan] { (void)ops::random_normal({2}, nan, 1, {}); }},
      {"rope_tables", "argument rotated", [] { (void)ops::rope_tables(4, 3, 10000); }},
      {"rope_tables", "argument positions", [] { (void)ops::rope_tables(-1, 4, 10000); }},
      {"rope_tables", "argument base", [] { (void)ops::rope_tables(4, 4, 0); }},
      {"rope_tables", "argument dtype", [] { (void)ops::rope_tables(4, 4, 10, DType::bf16); }},
      {"clip_scale", "argument max_norm", [] { (void)ops::clip_scale(Tensor::scalar(1), 0); }},
      {"clip_scale", "argument norm", [] { (void)ops::clip_scale(Tensor::scalar(-1), 1); }},
      {"adamw", "argument beta1",
       [] {
         Tensor w = f32({3}), m = f32({3}), v = f32({3});
         ops::adamw(w, f32({3}), m, v, {.beta1 = 1});
       }},
      {"adamw", "argument lr",
       [nan] {
         Tensor w = f32({3}), m = f32({3}), v = f32({3});
         ops::adamw(w, f32({3}), m, v, {.lr = nan});
       }},
      {"sgd", "argument nesterov",
       [] {
         Tensor w = f32({3}), none_yet;
         ops::sgd(w, f32({3}), none_yet, {.nesterov = true});
       }},
      {"linear", "option wide",
       [] {
         (void)ops::linear(bf({2, 3}), f32({5, 3}), {},
                           {.activation = ops::Activation::relu, .residual = {}, .wide = true});
       }},
      {"linear_many", "weights[1]: argument weight",
       [] {
         const std::vector<ops::LinearWeights> weights = {{f32({5, 3}), {}}, {f32({5, 4}), {}}};
         (void)ops::linear_many(f32({2, 3}), weights);
       }},
      {"linear_pair", "second: argument bias",
       [] {
         (void)ops::linear_pair(f32({2, 3}), {f32({5, 3}), {}}, ops::Activation::gelu,
                                {f32({3, 5}), f32({5})});
       }},
      {"elman", "argument recurrent", [] { (void)ops::elman(f32({1, 2, 3}), f32({3, 4})); }},
      {"elman", "argument lengths",
       [] { (void)ops::elman(f32({1, 2, 3}), f32({3, 3}), {.lengths = i64({1}, 3)}); }},
  };
}

Tensor heads(std::int64_t count) { return f32({2, 3, count, 4}); }

std::vector<BadCall> attentions() {
  const auto with = [](const auto& change) {
    return [change] {
      ops::AttentionOptions o;
      change(o);
      (void)ops::attention(heads(4), heads(2), heads(2), o);
    };
  };
  using O = ops::AttentionOptions;
  return {
      {"attention", "argument q", [] { (void)ops::attention(f32({2, 3}), heads(2), heads(2)); }},
      {"attention", "argument k", [] { (void)ops::attention(heads(4), heads(3), heads(3)); }},
      {"attention", "argument v", [] { (void)ops::attention(heads(4), heads(2), heads(1)); }},
      {"attention", "argument k",
       [] { (void)ops::attention(heads(4), bf({2, 3, 2, 4}), heads(2)); }},
      {"attention", "argument softcap", with([](O& o) { o.softcap = -1; })},
      {"attention", "argument softcap", with([](O& o) { o.softcap = 1e-40; })},
      {"attention", "argument scale", with([](O& o) { o.scale = 1e40; })},
      {"attention", "argument dropout", with([](O& o) { o.dropout = 1; })},
      {"attention", "argument look_back", with([](O& o) { o.mask.look_back = -1; })},
      {"attention", "argument look_ahead", with([](O& o) {
         o.mask.causal = true;
         o.mask.look_ahead = 1;
       })},
      {"attention", "argument first_query",
       with([](O& o) { o.mask.first_query = std::int64_t{1} << 31; })},
      {"attention", "argument first_query",
       with([](O& o) { o.mask.first_query = -(std::int64_t{1} << 31); })},
      {"attention", "argument first_queries",
       with([](O& o) { o.mask.first_queries = i64({2}, 2147483648.0); })},
      {"attention", "argument first_queries", with([](O& o) { o.mask.first_queries = i64({3}); })},
      {"attention", "argument key_lengths", with([](O& o) { o.mask.key_lengths = i64({2}, 4); })},
      {"attention", "argument prefix_lengths",
       with([](O& o) { o.mask.prefix_lengths = i64({2}, 1); })},
      {"attention", "argument key_documents",
       with([](O& o) { o.mask.key_documents = i64({2, 3}); })},
      {"attention", "argument relative_bias", with([](O& o) { o.relative_bias = f32({4, 6}); })},
      {"attention", "argument sinks", with([](O& o) {
         o.sinks = f32({4});
         o.normaliser = ops::Normaliser::relu;
       })},
      {"additive_attention", "argument w",
       [] { (void)ops::additive_attention(heads(4), heads(2), f32({2, 4}), heads(2)); }},
  };
}

std::vector<BadCall> all_bad_calls() {
  std::vector<BadCall> all;
  for (const auto& part : {elementwise(), shapes(), matrices(), rows(), indices(), optimizers(),
                           numbers(), attentions()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(BadCalls, AreAtLeastSixty) { EXPECT_GE(all_bad_calls().size(), 60u); }

TEST(BadCalls, NameOpArgumentExpectedAndGot) {
  for (const BadCall& bad : all_bad_calls()) {
    try {
      bad.call();
      ADD_FAILURE() << bad.op << ": a wrong " << bad.argument << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), bad.op) << e.what();
      EXPECT_NE(std::string(e.what()).find(bad.argument), std::string::npos) << e.what();
      EXPECT_FALSE(e.expected().empty()) << e.what();
      EXPECT_FALSE(e.got().empty()) << e.what();
    }
  }
}

// The same calls while a tape records: an op that throws must leave nothing on it.
TEST(BadCalls, LeaveTheTapeAsItWas) {
  const Tape tape;
  for (const BadCall& bad : all_bad_calls()) {
    EXPECT_THROW(bad.call(), Error);
    EXPECT_EQ(tape.recorded_ops(), 0u);
  }
}

TEST(BadCalls, RuntimeSettingsAreChecked) {
  EXPECT_THROW(set_threads(0), Error);
  EXPECT_THROW(set_threads(257), Error);
  EXPECT_THROW(set_instruction_set("avx1024"), Error);
  EXPECT_THROW((void)dtype_from_name("bfloat16"), Error);
}

}  // namespace
}  // namespace heddle
