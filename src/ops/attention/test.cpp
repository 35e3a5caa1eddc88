#include "harness/harness.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::harness::attention_cases {
namespace {

using ops::AttentionOptions;
using ops::Normaliser;

struct Sizes {
  std::int64_t batch = 2, queries = 5, keys = 5, heads = 4, key_heads = 2, width = 6, value = 5;
};

struct Spec {
  std::string name;
  Sizes s = {};
  AttentionOptions options = {};
  bool bias = false;
  bool sinks = false;
  bool additive = false;
  Shape added_over = {};    // sequences and heads of the additive mask
  Shape allowed_over = {};  // and of the boolean one
};

Tensor integers(const Shape& shape, std::initializer_list<std::int64_t> values) {
  return Tensor::from<std::int64_t>(shape, values);
}

// The same options with the mask's tensors on the meta device.
AttentionOptions on_meta(AttentionOptions o) {
  for (Tensor* t : {&o.mask.prefix_lengths, &o.mask.key_lengths, &o.mask.query_documents,
                    &o.mask.key_documents, &o.mask.first_queries})
    if (t->defined()) *t = Tensor::empty(t->shape(), t->dtype(), Device::meta);
  return o;
}

Shape pairs(const Shape& over, const Sizes& s) { return {over[0], over[1], s.queries, s.keys}; }

// Holes here and there, and every eleventh row sees nothing.
In holes(const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements_of(shape); ++i)
    values.push_back(i * 7919 % 5 == 0 || i / shape[3] % 11 == 4 ? 0 : 1 + i % 255);
  return given_index(shape, values, DType::u8);
}

void add(const Spec& spec) {
  Case c;
  c.op = "attention";
  c.name = spec.name;
  const Sizes& s = spec.s;
  c.inputs = {act({s.batch, s.queries, s.heads, s.width}),
              act({s.batch, s.keys, s.key_heads, s.width}),
              act({s.batch, s.keys, s.key_heads, s.value})};
  const ops::AttentionMask& mask = spec.options.mask;
  c.cost_by_shape = !mask.key_lengths.defined() && !mask.key_documents.defined() &&
                    !mask.prefix_lengths.defined() && !mask.first_queries.defined();
  if (spec.additive) c.inputs.push_back(param({s.heads, s.width}));
  if (spec.bias) c.inputs.push_back(param({s.heads, s.queries + s.keys - 1}));
  if (spec.sinks) c.inputs.push_back(param({s.heads}));
  if (!spec.added_over.empty()) c.inputs.push_back(param(pairs(spec.added_over, s)));
  if (!spec.allowed_over.empty()) c.inputs.push_back(holes(pairs(spec.allowed_over, s)));
  const auto call = [spec, meta = on_meta(spec.options)](std::span<const Tensor> in, auto dot,
                                                         auto additive) {
    AttentionOptions o = in[0].device() == Device::meta ? meta : spec.options;
    std::size_t at = spec.additive ? 4 : 3;
    if (spec.bias) o.relative_bias = in[at++];
    if (spec.sinks) o.sinks = in[at++];
    if (!spec.added_over.empty()) o.additive_mask = in[at++];
    if (!spec.allowed_over.empty()) o.mask.allowed = in[at++];
    return Tensors{spec.additive ? additive(in[0], in[1], in[3], in[2], o)
                                 : dot(in[0], in[1], in[2], o)};
  };
  c.run = [call](std::span<const Tensor> in) {
    return call(in, ops::attention, ops::additive_attention);
  };
  c.reference = [call](std::span<const Tensor> in) {
    return call(in, ops::reference::attention, ops::reference::additive_attention);
  };
  c.reduction = s.keys + s.width;
  // bf16 rounds the weights and dS before they are multiplied.
  c.slack = 6;
  if (spec.options.normaliser == Normaliser::relu) c.step = 1e-6;
  add_case(c);
}

// All queries of all sequences see what those of the first one do.
const std::int32_t* of_first_sequence(const cpu::AttentionArgs& a, const std::int32_t* keys) {
  static std::vector<std::int32_t> all;
  all.clear();
  for (std::int64_t b = 0; b < a.shape.batch; ++b)
    all.insert(all.end(), keys, keys + a.shape.queries);
  return all.data();
}

void add_masks_of_pairs() {
  add({.name = "additive mask", .s = {2, 9, 7, 4, 2, 6, 5}, .added_over = {2, 4}});
  add({.name = "additive mask, shared by all", .s = {2, 9, 11, 4, 2, 6, 5}, .added_over = {1, 1}});
  add({.name = "additive mask, no keys", .s = {2, 3, 0, 2, 1, 4, 3}, .added_over = {1, 2}});
  add({.name = "additive mask, few queries", .s = {2, 3, 300, 4, 1, 6, 5}, .added_over = {2, 1}});
  add({.name = "holes", .s = {2, 12, 9, 4, 2, 6, 5}, .allowed_over = {2, 4}});
  add({.name = "holes, few queries", .s = {1, 5, 300, 4, 2, 6, 5}, .allowed_over = {1, 4}});
  Spec tiles{.name = "both masks of pairs, several tiles, everything else",
             .s = {2, 140, 250, 2, 1, 8, 24},
             .bias = true,
             .sinks = true,
             .added_over = {1, 2},
             .allowed_over = {2, 1}};
  tiles.options.mask.causal = true;
  tiles.options.mask.first_query = 100;
  tiles.options.mask.look_back = 120;
  tiles.options.mask.key_lengths = integers({2}, {250, 190});
  tiles.options.softcap = 1.5;
  tiles.options.dropout = 0.3;
  tiles.options.key = {5, 6, 8};
  tiles.options.first_row = 33;
  add(tiles);
  Spec relu{.name = "both masks of pairs, relu", .s = {2, 9, 8, 4, 2, 6, 5}};
  relu.options.normaliser = Normaliser::relu;
  relu.added_over = {1, 4};
  relu.allowed_over = {1, 1};
  add(relu);
  add({.name = "both masks of pairs, additive score",
       .s = {2, 12, 9, 4, 2, 3, 5},
       .additive = true,
       .added_over = {2, 1},
       .allowed_over = {1, 4}});
  Spec starts{.name = "queries begin elsewhere in each sequence", .s = {3, 9, 7, 2, 1, 4, 4}};
  starts.options.mask.causal = true;
  starts.options.mask.look_back = 3;
  starts.options.mask.first_query = -1;
  starts.options.mask.first_queries = integers({3}, {-4, 0, 5});
  add(starts);
}

// Widths that are multiples of 16, which GPUs multiply on tensor cores: each size of tile, edges in
// both directions, and all options.
void add_tensor_core_widths() {
  Spec narrow{.name = "widths of 16 and 48, causal", .s = {2, 70, 150, 4, 2, 16, 48}};
  narrow.options.mask.causal = true;
  narrow.options.mask.first_query = 80;
  add(narrow);
  Spec all{.name = "width of 64, everything", .s = {2, 130, 140, 2, 1, 64, 64}};
  all.options.mask.causal = true;
  all.options.mask.first_query = 10;
  all.options.mask.look_back = 90;
  all.options.softcap = 2;
  all.options.dropout = 0.2;
  all.options.key = {1, 2, 3};
  all.options.first_row = 77;
  all.bias = all.sinks = true;
  add(all);
  Spec relu{.name = "widths of 128 and 80, relu, masks of pairs", .s = {2, 70, 90, 2, 2, 128, 80}};
  relu.options.normaliser = Normaliser::relu;
  relu.added_over = {1, 2};
  relu.allowed_over = {2, 1};
  relu.bias = true;
  add(relu);
  Spec wide{.name = "widths of 256 and 176, window, dropout", .s = {1, 75, 70, 2, 1, 256, 176}};
  wide.options.mask.causal = true;
  wide.options.mask.look_back = 33;
  wide.options.dropout = 0.4;
  wide.options.softcap = 3;
  wide.bias = true;
  add(wide);
  Spec few{.name = "width of 64, few queries, sinks", .s = {2, 3, 300, 4, 2, 64, 64}};
  few.options.mask.key_lengths = integers({2}, {300, 140});
  few.sinks = true;
  add(few);
  Spec rows{.name = "width of 32, few queries of many heads", .s = {1, 8, 200, 10, 1, 32, 32}};
  rows.options.mask.causal = true;
  rows.options.mask.first_query = 190;
  rows.options.dropout = 0.3;
  rows.bias = true;
  add(rows);
}

const std::int32_t* no_first_keys(std::int64_t rows) {
  static std::vector<std::int32_t> zeros;
  zeros.assign(static_cast<std::size_t>(rows), 0);
  return zeros.data();
}

const bool registered = [] {
  add({.name = "plain"});
  add({.name = "one key", .s = {1, 1, 1, 1, 1, 1, 1}});
  add({.name = "no keys", .s = {2, 3, 0, 2, 1, 4, 3}});
  add({.name = "no queries", .s = {2, 0, 3, 2, 1, 4, 3}});
  add({.name = "cross", .s = {2, 7, 11, 3, 1, 5, 8}});
  Spec causal{.name = "causal"};
  causal.options.mask.causal = true;
  add(causal);
  Spec tiles{.name = "causal, several tiles", .s = {1, 150, 150, 2, 1, 16, 16}};
  tiles.options.mask.causal = true;
  add(tiles);
  Spec window{.name = "window, several tiles", .s = {1, 140, 140, 2, 2, 8, 24}};
  window.options.mask.causal = true;
  window.options.mask.look_back = 9;
  add(window);
  Spec around{.name = "look back and ahead", .s = {2, 9, 9, 2, 2, 4, 4}};
  around.options.mask.look_back = 2;
  around.options.mask.look_ahead = 1;
  add(around);
  Spec padding{.name = "padding, one row empty", .s = {3, 4, 6, 2, 1, 4, 4}};
  padding.options.mask.key_lengths = integers({3}, {6, 2, 0});
  add(padding);
  Spec documents{.name = "documents", .s = {2, 6, 6, 2, 1, 4, 4}};
  documents.options.mask.causal = true;
  documents.options.mask.query_documents = integers({2, 6}, {0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 4, 4});
  documents.options.mask.key_documents = documents.options.mask.query_documents;
  add(documents);
  Spec prefix{.name = "prefix", .s = {2, 6, 6, 2, 2, 4, 4}};
  prefix.options.mask.causal = true;
  prefix.options.mask.prefix_lengths = integers({2}, {3, 0});
  add(prefix);
  Spec cache{.name = "continues a cache", .s = {1, 3, 10, 4, 2, 4, 4}};
  cache.options.mask.causal = true;
  cache.options.mask.first_query = 7;
  cache.options.mask.look_back = 4;
  add(cache);
  Spec capped{.name = "softcap, bias, sinks", .s = {2, 9, 7, 4, 2, 6, 5}};
  capped.options.softcap = 1.5;
  capped.options.mask.look_back = 5;
  capped.bias = capped.sinks = true;
  add(capped);
  Spec relu{.name = "relu", .s = {2, 8, 9, 4, 2, 6, 5}};
  relu.options.normaliser = Normaliser::relu;
  relu.bias = true;
  add(relu);
  Spec relu_causal = tiles;
  relu_causal.name = "relu, causal, several tiles";
  relu_causal.options.normaliser = Normaliser::relu;
  add(relu_causal);
  add({.name = "additive", .s = {2, 5, 7, 4, 2, 3, 5}, .additive = true});
  Spec additive{.name = "additive, causal, several tiles, bias", .s = {1, 140, 140, 2, 1, 4, 8}};
  additive.options.mask.causal = true;
  additive.bias = additive.additive = true;
  add(additive);
  Spec ring{.name = "ring, few queries", .s = {2, 2, 50, 4, 2, 6, 5}};
  ring.options.first_row = 37;
  ring.options.mask.causal = true;
  ring.options.mask.first_query = 48;
  ring.options.mask.look_back = 41;
  add(ring);
  Spec long_ring = tiles;
  long_ring.name = "ring, several tiles, softcap";
  long_ring.options.first_row = 101;
  long_ring.options.softcap = 2;
  add(long_ring);
  Spec long_cache{.name = "one query, several blocks of keys", .s = {1, 1, 900, 4, 1, 8, 40}};
  long_cache.sinks = true;
  add(long_cache);
  Spec many_rows{.name = "few queries, many heads, several blocks", .s = {1, 7, 800, 6, 2, 20, 7}};
  many_rows.options.mask.causal = true;
  many_rows.options.mask.first_query = 790;
  many_rows.bias = true;
  add(many_rows);
  Spec relu_cache{.name = "relu, few queries, several blocks", .s = {1, 3, 600, 2, 1, 4, 4}};
  relu_cache.options.normaliser = Normaliser::relu;
  add(relu_cache);
  Spec additive_cache{.name = "additive, few queries, several blocks",
                      .s = {1, 2, 500, 4, 2, 3, 5}};
  additive_cache.additive = true;
  additive_cache.options.first_row = 77;
  add(additive_cache);
  Spec dropped{.name = "dropout, few queries", .s = {2, 5, 11, 4, 2, 6, 5}};
  dropped.options.dropout = 0.3;
  dropped.options.key = {5, 6, 7};
  add(dropped);
  Spec dropped_tiles = tiles;
  dropped_tiles.name = "dropout, several tiles, bias, sinks";
  dropped_tiles.options.dropout = 0.5;
  dropped_tiles.options.key = {8, 9, 10};
  dropped_tiles.bias = dropped_tiles.sinks = true;
  add(dropped_tiles);
  Spec blocks{.name = "several blocks of queries and keys", .s = {1, 230, 420, 2, 1, 12, 20}};
  blocks.options.mask.look_back = 150;
  blocks.options.mask.look_ahead = 130;
  blocks.options.mask.first_query = 100;
  add(blocks);
  add_masks_of_pairs();
  add_tensor_core_widths();

  using K = cpu::AttentionKernels;
  using G = cpu::AttentionGradientKernels;
  add_kernel_mutant<K>("attention", "heads share the first one's additive mask", [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      b.additive_strides.head = 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("attention", "the additive mask has no gradient", [](G& k) {
    k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
      cpu::AttentionBackwardArgs b = a;
      b.d_additive = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("attention", "backward, holes of the mask are filled", [](G& k) {
    k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
      cpu::AttentionBackwardArgs b = a;
      b.forward.allowed = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<K>("attention", "all sequences begin where the first one does", [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      b.last_key = of_first_sequence(a, a.last_key);
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("attention", "the ring is taken for a row", [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      b.first_row = 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("attention", "other weights are dropped backward", [](G& k) {
    k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
      cpu::AttentionBackwardArgs b = a;
      b.forward.key.op += 1;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<K>("attention", "the first key of a window is forgotten", [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      b.first_key = no_first_keys(a.shape.batch * a.shape.queries);
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("attention", "the cap is not differentiated", [](G& k) {
    k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
      cpu::AttentionBackwardArgs b = a;
      b.forward.softcap = 0;
      sound<G>().backward(b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::attention_cases
