// Every op that takes tensors, every tensor it takes: one at a time is left out, of a type that no
// op computes in, or on another device. The op must throw an Error that names itself and the
// argument; the types an op does accept are written down in the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/ops.h"
#include "io/files/file.h"
#include "unit/source_tree.h"

namespace heddle {
namespace {

enum class Takes { numbers, indices, mask, anything };

struct Argument {
  std::string name;
  Tensor good;
  Takes takes = Takes::numbers;
  bool optional = false;
};

using Arguments = std::vector<Tensor>;

struct TensorOp {
  std::string name;  // Error::where()
  std::vector<Argument> arguments;
  std::function<void(Arguments&)> call;
};

Tensor ones(const Shape& shape) { return Tensor::full(shape, 1); }
Argument numbers(const char* name, const Shape& shape) { return {name, ones(shape)}; }
Argument maybe(const char* name, const Shape& shape) {
  return {name, ones(shape), Takes::numbers, true};
}
Argument indices(const char* name, const Shape& shape, bool optional = false) {
  return {name, Tensor::zeros(shape, DType::i64), Takes::indices, optional};
}
Argument anything(const char* name, const Shape& shape) {
  return {name, ones(shape), Takes::anything};
}

void add_elementwise(std::vector<TensorOp>& all) {
  using Unary = Tensor (*)(const Tensor&);
  const std::pair<const char*, Unary> unary[] = {{"neg", ops::neg},
                                                 {"exp", ops::exp},
                                                 {"log", ops::log},
                                                 {"sqrt", ops::sqrt},
                                                 {"rsqrt", ops::rsqrt},
                                                 {"square", ops::square},
                                                 {"relu", ops::relu},
                                                 {"gelu", ops::gelu},
                                                 {"gelu_tanh", ops::gelu_tanh},
                                                 {"quick_gelu", ops::quick_gelu},
                                                 {"silu", ops::silu},
                                                 {"tanh", ops::tanh},
                                                 {"sigmoid", ops::sigmoid},
                                                 {"softmax", ops::softmax},
                                                 {"log_softmax", ops::log_softmax},
                                                 {"sum_all", ops::sum_all},
                                                 {"mean_all", ops::mean_all}};
  for (const auto& [name, op] : unary)
    all.push_back({name, {numbers("x", {2, 3})}, [op](Arguments& a) { (void)op(a[0]); }});
  using Binary = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Binary> binary[] = {{"add", ops::add},
                                                   {"sub", ops::sub},
                                                   {"mul", ops::mul},
                                                   {"div", ops::div},
                                                   {"maximum", ops::maximum}};
  for (const auto& [name, op] : binary)
    all.push_back({name, {numbers("a", {2, 3}), numbers("b", {2, 3})}, [op](Arguments& a) {
                     (void)op(a[0], a[1]);
                   }});
  const std::vector<Argument> x = {numbers("x", {2, 3})};
  all.push_back({"scale", x, [](Arguments& a) { (void)ops::scale(a[0], 2); }});
  all.push_back({"add", x, [](Arguments& a) { (void)ops::add(a[0], 2); }});
  all.push_back({"softcap", x, [](Arguments& a) { (void)ops::softcap(a[0], 2); }});
  all.push_back({"dropout", x, [](Arguments& a) { (void)ops::dropout(a[0], 0.5, {}); }});
  all.push_back({"sum", x, [](Arguments& a) { (void)ops::sum(a[0], 0); }});
  all.push_back({"mean", x, [](Arguments& a) { (void)ops::mean(a[0], 0); }});
  all.push_back({"max", x, [](Arguments& a) { (void)ops::max(a[0], 0); }});
  all.push_back({"sum_to", x, [](Arguments& a) { (void)ops::sum_to(a[0], {3}); }});
  all.push_back({"broadcast_to", x, [](Arguments& a) { (void)ops::broadcast_to(a[0], {2, 3}); }});
  all.push_back({"glu", {numbers("gate", {2, 3}), numbers("up", {2, 3})}, [](Arguments& a) {
                   (void)ops::glu(a[0], a[1]);
                 }});
  all.push_back({"glu", {numbers("both", {2, 4})}, [](Arguments& a) { (void)ops::glu(a[0]); }});
}

void add_copies(std::vector<TensorOp>& all) {
  const std::vector<Argument> x = {anything("x", {2, 3})};
  all.push_back({"contiguous", x, [](Arguments& a) { (void)ops::contiguous(a[0]); }});
  all.push_back({"clone", x, [](Arguments& a) { (void)ops::clone(a[0]); }});
  all.push_back({"cast", x, [](Arguments& a) { (void)ops::cast(a[0], DType::f32); }});
  all.push_back({"reshape", x, [](Arguments& a) { (void)ops::reshape(a[0], {6}); }});
  all.push_back({"transpose", x, [](Arguments& a) { (void)ops::transpose(a[0], 0, 1); }});
  all.push_back({"permute", x, [](Arguments& a) {
                   const std::vector<int> order = {1, 0};
                   (void)ops::permute(a[0], order);
                 }});
  all.push_back({"slice", x, [](Arguments& a) { (void)ops::slice(a[0], 0, 0, 1); }});
  all.push_back({"split", x, [](Arguments& a) {
                   const std::vector<std::int64_t> sizes = {1, 1};
                   (void)ops::split(a[0], sizes, 0);
                 }});
  all.push_back({"concat",
                 {anything("parts[0]", {2}), anything("parts[1]", {2})},
                 [](Arguments& a) { (void)ops::concat(a, 0); }});
  all.push_back({"copy_into", {anything("dst", {2}), anything("src", {2})}, [](Arguments& a) {
                   ops::copy_into(a[0], a[1]);
                 }});
  all.push_back({"add_into", {numbers("target", {2}), numbers("x", {2})}, [](Arguments& a) {
                   ops::add_into(a[0], a[1]);
                 }});
}

void add_products(std::vector<TensorOp>& all) {
  all.push_back({"matmul", {numbers("a", {2, 3}), numbers("b", {3, 2})}, [](Arguments& a) {
                   (void)ops::matmul(a[0], a[1]);
                 }});
  all.push_back(
      {"linear",
       {numbers("x", {2, 3}), numbers("weight", {5, 3}), maybe("bias", {5}),
        maybe("residual", {2, 5})},
       [](Arguments& a) { (void)ops::linear(a[0], a[1], a[2], {ops::Activation::gelu, a[3]}); }});
  all.push_back({"linear_many",
                 {numbers("x", {2, 3}), numbers("weight", {5, 3}), maybe("bias", {5}),
                  numbers("weight", {4, 3}), maybe("bias", {4})},
                 [](Arguments& a) {
                   const std::vector<ops::LinearWeights> w = {{a[1], a[2]}, {a[3], a[4]}};
                   (void)ops::linear_many(a[0], w);
                 }});
  all.push_back({"linear_pair",
                 {numbers("x", {2, 3}), numbers("weight", {5, 3}), maybe("bias", {5}),
                  numbers("weight", {3, 5}), maybe("bias", {3})},
                 [](Arguments& a) {
                   (void)ops::linear_pair(a[0], {a[1], a[2]}, ops::Activation::relu, {a[3], a[4]});
                 }});
  all.push_back(
      {"patch_embed",
       {numbers("images", {1, 3, 4, 4}), numbers("weight", {5, 3, 2, 2}), maybe("bias", {5})},
       [](Arguments& a) { (void)ops::patch_embed(a[0], a[1], a[2]); }});
  const auto weighted = [](const Tensor& weights) {
    ops::CrossEntropyOptions o;
    o.class_weights = weights;
    return o;
  };
  all.push_back({"linear_cross_entropy",
                 {numbers("x", {2, 3}), numbers("weight", {5, 3}), maybe("bias", {5}),
                  indices("targets", {2}), maybe("class_weights", {5})},
                 [weighted](Arguments& a) {
                   (void)ops::linear_cross_entropy(a[0], a[1], a[2], a[3], weighted(a[4]));
                 }});
  all.push_back(
      {"cross_entropy",
       {numbers("logits", {2, 3}), indices("targets", {2}), maybe("class_weights", {3})},
       [weighted](Arguments& a) { (void)ops::cross_entropy(a[0], a[1], weighted(a[2])); }});
  all.push_back(
      {"nll_loss",
       {numbers("log_probs", {2, 3}), indices("targets", {2}), maybe("class_weights", {3})},
       [weighted](Arguments& a) { (void)ops::nll_loss(a[0], a[1], weighted(a[2])); }});
  all.push_back({"elman",
                 {numbers("pre", {2, 3, 4}), numbers("recurrent", {4, 4}), maybe("h0", {2, 4}),
                  indices("lengths", {2}, true)},
                 [](Arguments& a) { (void)ops::elman(a[0], a[1], {a[2], a[3]}); }});
}

void add_rows(std::vector<TensorOp>& all) {
  const Argument x = numbers("x", {2, 3}), residual = numbers("residual", {2, 3});
  const Argument gain = maybe("gain", {3}), bias = maybe("bias", {3});
  all.push_back({"rms_norm", {x, gain}, [](Arguments& a) { (void)ops::rms_norm(a[0], a[1], 1); }});
  all.push_back({"add_rms_norm", {x, residual, gain}, [](Arguments& a) {
                   (void)ops::add_rms_norm(a[0], a[1], a[2], 1);
                 }});
  all.push_back({"layer_norm", {x, gain, bias}, [](Arguments& a) {
                   (void)ops::layer_norm(a[0], a[1], a[2], 1);
                 }});
  all.push_back({"add_layer_norm", {x, residual, gain, bias}, [](Arguments& a) {
                   (void)ops::add_layer_norm(a[0], a[1], a[2], a[3], 1);
                 }});
  all.push_back(
      {"mean_pool",
       {numbers("x", {2, 3, 4}), {"mask", Tensor::full({2, 3}, 1, DType::u8), Takes::mask, true}},
       [](Arguments& a) { (void)ops::mean_pool(a[0], a[1]); }});
  all.push_back({"rope",
                 {numbers("x", {1, 3, 2, 4}), numbers("cos", {8, 2}), numbers("sin", {8, 2}),
                  indices("positions", {3}, true)},
                 [](Arguments& a) { (void)ops::rope(a[0], a[1], a[2], {.positions = a[3]}); }});
}

void add_lookups(std::vector<TensorOp>& all) {
  all.push_back({"embedding", {numbers("table", {4, 2}), indices("ids", {3})}, [](Arguments& a) {
                   (void)ops::embedding(a[0], a[1], DType::f32);
                 }});
  all.push_back({"gather", {numbers("x", {3, 2}), indices("index", {3, 2})}, [](Arguments& a) {
                   (void)ops::gather(a[0], 0, a[1]);
                 }});
  all.push_back({"scatter_add",
                 {numbers("x", {3, 2}), indices("index", {3, 2}), numbers("source", {3, 2})},
                 [](Arguments& a) { (void)ops::scatter_add(a[0], 0, a[1], a[2]); }});
  all.push_back({"index_select", {numbers("x", {3, 2}), indices("index", {2})}, [](Arguments& a) {
                   (void)ops::index_select(a[0], a[1]);
                 }});
  all.push_back({"index_add",
                 {numbers("x", {3, 2}), indices("index", {2}), numbers("source", {2, 2})},
                 [](Arguments& a) { (void)ops::index_add(a[0], a[1], a[2]); }});
  all.push_back({"top_k", {numbers("x", {2, 3})}, [](Arguments& a) { (void)ops::top_k(a[0], 2); }});
  all.push_back({"put_row",
                 {anything("rows", {2, 3, 4}),
                  {"at", Tensor::zeros({1}, DType::i32), Takes::indices},
                  anything("row", {2, 1, 4})},
                 [](Arguments& a) { ops::put_row(a[0], a[1], a[2]); }});
}

void add_optimizers(std::vector<TensorOp>& all) {
  all.push_back(
      {"adamw",
       {numbers("weight", {3}), numbers("grad", {3}), numbers("m", {3}), numbers("v", {3})},
       [](Arguments& a) { ops::adamw(a[0], a[1], a[2], a[3], {}); }});
  all.push_back({"sgd",
                 {numbers("weight", {3}), numbers("grad", {3}), numbers("buffer", {3})},
                 [](Arguments& a) { ops::sgd(a[0], a[1], a[2], {.momentum = 0.9}); }});
  all.push_back({"global_norm",
                 {numbers("grads[0]", {3}), numbers("grads[1]", {2})},
                 [](Arguments& a) { (void)ops::global_norm(a); }});
  all.push_back({"clip_scale", {numbers("norm", {}), numbers("losses", {})}, [](Arguments& a) {
                   (void)ops::clip_scale(a[0], 1, std::span(&a[1], 1));
                 }});
  all.push_back(
      {"scale_into", {numbers("x", {3})}, [](Arguments& a) { ops::scale_into(a[0], 2); }});
}

void add_attention(std::vector<TensorOp>& all) {
  const Argument q = numbers("q", {2, 3, 4, 5}), k = numbers("k", {2, 3, 2, 5});
  const Argument v = numbers("v", {2, 3, 2, 5}), w = numbers("w", {4, 5});
  const std::vector<Argument> options = {
      indices("key_lengths", {2}, true),
      maybe("relative_bias", {4, 5}),
      maybe("sinks", {4}),
      maybe("additive_mask", {1, 4, 3, 3}),
      {"allowed", Tensor::full({2, 1, 3, 3}, 1, DType::u8), Takes::mask, true}};
  const auto with = [](std::span<const Tensor> a) {
    ops::AttentionOptions o;
    o.mask.key_lengths = a[0];
    o.relative_bias = a[1];
    o.sinks = a[2];
    o.additive_mask = a[3];
    o.mask.allowed = a[4];
    return o;
  };
  std::vector<Argument> plain = {q, k, v}, additive = {q, k, w, v};
  plain.insert(plain.end(), options.begin(), options.end());
  additive.insert(additive.end(), options.begin(), options.end());
  all.push_back({"attention", plain, [with](Arguments& a) {
                   (void)ops::attention(a[0], a[1], a[2], with(std::span(a).subspan(3)));
                 }});
  all.push_back({"additive_attention", additive, [with](Arguments& a) {
                   const auto o = with(std::span(a).subspan(4));
                   (void)ops::additive_attention(a[0], a[1], a[2], a[3], o);
                 }});
  all.push_back({"attention_with_sums", plain, [with](Arguments& a) {
                   const auto o = with(std::span(a).subspan(3));
                   (void)ops::attention_with_sums(a[0], a[1], a[2], o);
                 }});
  all.push_back({"additive_attention_with_sums", additive, [with](Arguments& a) {
                   const auto o = with(std::span(a).subspan(4));
                   (void)ops::additive_attention_with_sums(a[0], a[1], a[2], a[3], o);
                 }});
  all.push_back(
      {"attention_each",
       {numbers("q", {1, 3, 4, 5}), numbers("k", {1, 3, 2, 5}), numbers("v", {1, 3, 2, 5})},
       [](Arguments& a) {
         const std::vector<ops::AttentionPart> parts = {{a[0], a[1], a[2]}};
         (void)ops::attention_each(parts);
       }});
  all.push_back({"additive_attention_weights", {q, k, w}, [](Arguments& a) {
                   (void)ops::additive_attention_weights(a[0], a[1], a[2], {}, {.count = 1});
                 }});
  all.push_back({"attention_weights", {q, k}, [](Arguments& a) {
                   (void)ops::attention_weights(a[0], a[1], {}, {.count = 1});
                 }});
  all.push_back({"attention_scores", {q, k}, [](Arguments& a) {
                   (void)ops::attention_scores(a[0], a[1], {}, {.count = 1});
                 }});
  all.push_back({"additive_attention_scores", {q, k, w}, [](Arguments& a) {
                   (void)ops::additive_attention_scores(a[0], a[1], a[2], {}, {.count = 1});
                 }});
}

std::vector<TensorOp> tensor_ops() {
  std::vector<TensorOp> all;
  add_elementwise(all);
  add_copies(all);
  add_products(all);
  add_rows(all);
  add_lookups(all);
  add_optimizers(all);
  add_attention(all);
  return all;
}

Arguments good_arguments(const TensorOp& op) {
  Arguments all;
  for (const Argument& a : op.arguments)
    all.push_back(a.good.defined() ? ops::clone(a.good) : Tensor());
  return all;
}

// An op that also gives the sums of its rows complains as the op that people call.
std::string told_name(const std::string& op) {
  constexpr std::string_view with_sums = "_with_sums";
  return op.ends_with(with_sums) ? op.substr(0, op.size() - with_sums.size()) : op;
}

// The call with argument `i` replaced. Where it alone is wrong, it must be the one that is named;
// of two devices either may be.
void expect_refused(const TensorOp& op, std::size_t i, const Tensor& wrong, bool by_name = true) {
  Arguments arguments = good_arguments(op);
  arguments[i] = wrong;
  const std::string& name = op.arguments[i].name;
  const std::string call = op.name + " with " + name + " = " + wrong.describe();
  try {
    op.call(arguments);
    ADD_FAILURE() << call << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), told_name(op.name)) << call << ": " << e.what();
    EXPECT_NE(e.problem().find("argument " + (by_name ? name : "")), std::string::npos)
        << call << ": " << e.what();
    EXPECT_FALSE(e.expected().empty()) << call << ": " << e.what();
    EXPECT_FALSE(e.got().empty()) << call << ": " << e.what();
  }
}

// Functions that take tensors, by the public headers of the ops, their definitions left out.
std::set<std::string> published() {
  static const std::regex note("//[^\n]*");
  static const std::regex definitions(R"(namespace reference \{[^}]*\})");
  static const std::regex function(R"(\b(\w+)\(([^;]*)\)( noexcept)?;)");
  static const std::regex tensors(R"(\b(Tensor|AttentionPart|LinearWeights)\b)");
  std::set<std::string> found;
  for (const auto& folder : std::filesystem::directory_iterator(source_tree("src/ops"))) {
    const auto header = folder.path() / (folder.path().filename().string() + ".h");
    if (!std::filesystem::exists(header)) continue;
    std::string text = io::read_file(header.string(), std::size_t{1} << 20U);
    text = std::regex_replace(std::regex_replace(text, note, ""), definitions, "");
    for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at)
      if (std::regex_search(at->str(2), tensors)) found.insert(at->str(1));
  }
  return found;
}

TEST(BadArguments, EveryOpHasARow) {
  // What these say of a tensor that is undefined is in their headers: it is no mistake.
  std::set<std::string> rows = {"is_half", "wide", "to_half"};
  for (const TensorOp& op : tensor_ops()) rows.insert(op.name);
  const std::set<std::string> ops = published();
  EXPECT_GT(ops.size(), 70U) << "the headers are no longer read as they are written";
  for (const std::string& name : ops) EXPECT_TRUE(rows.contains(name)) << name;
}

TEST(BadArguments, TheTableIsRight) {
  for (const TensorOp& op : tensor_ops()) {
    Arguments arguments = good_arguments(op);
    EXPECT_NO_THROW(op.call(arguments)) << op.name;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!op.arguments[i].optional) continue;
      arguments = good_arguments(op);
      arguments[i] = Tensor();
      EXPECT_NO_THROW(op.call(arguments)) << op.name << " without " << op.arguments[i].name;
    }
  }
}

TEST(BadArguments, MissingTensorsAreRefused) {
  for (const TensorOp& op : tensor_ops())
    for (std::size_t i = 0; i < op.arguments.size(); ++i)
      if (!op.arguments[i].optional) expect_refused(op, i, Tensor());
}

// Arguments that f16 is widened of. Parameters and what is changed in place are not among them.
std::vector<std::size_t> activations(const TensorOp& op) {
  static const std::set<std::string> names = {
      "x",  "a",      "b",         "gate", "up", "both", "images", "residual",
      "h0", "logits", "log_probs", "q",    "k",  "v",    "pre",    "source"};
  static const std::set<std::string> in_place = {"add_into", "adamw", "sgd", "scale_into"};
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < op.arguments.size(); ++i)
    if (op.arguments[i].takes == Takes::numbers && names.contains(op.arguments[i].name) &&
        !in_place.contains(op.name))
      found.push_back(i);
  return found;
}

TEST(BadArguments, TypesThatNobodyComputesInAreRefused) {
  for (const TensorOp& op : tensor_ops()) {
    const std::vector<std::size_t> widened = activations(op);
    for (std::size_t i = 0; i < op.arguments.size(); ++i)
      for (const DType dtype : {DType::u8, DType::f16, DType::f32}) {
        const Takes takes = op.arguments[i].takes;
        if (takes == Takes::anything) continue;
        if (takes == Takes::mask && dtype == DType::u8) continue;
        if (takes == Takes::numbers && dtype == DType::f32) continue;
        const bool half =
            dtype == DType::f16 && std::find(widened.begin(), widened.end(), i) != widened.end();
        if (half && widened.size() == 1) continue;  // of several, the others must be f16 as well
        expect_refused(op, i, Tensor::zeros(op.arguments[i].good.shape(), dtype), !half);
      }
  }
}

TEST(BadArguments, ActivationsInF16AreTaken) {
  std::size_t ops = 0;
  for (const TensorOp& op : tensor_ops()) {
    Arguments arguments = good_arguments(op);
    const std::vector<std::size_t> widened = activations(op);
    for (const std::size_t i : widened) arguments[i] = ops::cast(arguments[i], DType::f16);
    EXPECT_NO_THROW(op.call(arguments)) << op.name;
    ops += widened.empty() ? 0 : 1;
  }
  EXPECT_GT(ops, 50U);
}

TEST(BadArguments, OtherDevicesAreRefused) {
  for (const TensorOp& op : tensor_ops()) {
    if (op.arguments.size() < 2) continue;
    for (std::size_t i = 0; i < op.arguments.size(); ++i) {
      const Tensor& good = op.arguments[i].good;
      expect_refused(op, i, Tensor::empty(good.shape(), good.dtype(), Device::meta), false);
    }
  }
}

}  // namespace
}  // namespace heddle
