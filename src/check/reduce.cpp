#include "check/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "data/loading.h"

namespace heddle::check {

namespace {

using Size = std::int64_t;

constexpr Size kUnit = 16;     // lanes of the widest vectors
constexpr Size kContext = 40;  // tokens
// birnn as a language model reads every prefix for itself.
constexpr Size kPrefixContext = 14;
constexpr Size kQueriesPerKey = 8, kExperts = 8, kSharedExperts = 2;
constexpr Size kVocabulary = 67, kTargetVocabulary = 61, kClasses = 5;  // odd: tails everywhere
constexpr Size kPatches = 5;                                            // of an image's height

// At most two units, with the same tail.
Size cut(Size n, Size unit = kUnit) { return n <= unit ? n : unit + n % unit; }

bool power_of_two(Size n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }

// Sizes that the data would decide; large enough that nothing is refused because of them.
void assume_sizes(const recipe::Recipe& recipe, model::ModelConfig& m) {
  const data::DataConfig& d = recipe.data;
  m.sizes.classes = kClasses;
  if (m.kind == model::Kind::vit) {
    m.sizes.channels = 3;
    m.sizes.height = kPatches * m.patch;
    m.sizes.width = (kPatches + 1) * m.patch;
    return;
  }
  if (m.task != model::Task::tag && m.task != model::Task::classify) m.sizes.classes = 0;
  m.sizes.vocabulary = kVocabulary;
  if (!d.target_tokenizer.empty()) m.sizes.target_vocabulary = kTargetVocabulary;
  m.sizes.context = d.context > 0 ? d.context : d.max_length.value_or(data::kDefaultMaxLength);
}

// Of layers that differ one of each kind, as many as the model has layers for.
Size reduce_pattern(model::ModelConfig& m) {
  std::vector<nn::LayerAttention>& all = m.attention_layers;
  const auto used = static_cast<std::size_t>(std::max(m.layers, m.layers_of_decoder()));
  if (all.size() > used) all.resize(used);
  std::vector<nn::LayerAttention> kinds;
  for (const nn::LayerAttention& a : all)
    if (std::ranges::find(kinds, a) == kinds.end()) kinds.push_back(a);
  all = kinds;
  return static_cast<Size>(kinds.size());
}

void reduce_layers(model::ModelConfig& m) {
  const Size most = std::max<Size>(reduce_pattern(m), 2);
  const Size first = m.layers, second = m.layers_of_decoder();
  m.layers = std::min<Size>(first, first < second ? most - 1 : most);
  if (m.two_stacks()) m.decoder_layers = std::min<Size>(second, second < first ? most - 1 : most);
}

// ALiBi has another rule where the heads are no power of two.
void reduce_heads(nn::AttentionConfig& a) {
  const Size each = std::min(a.heads / a.key_heads(), kQueriesPerKey);
  const bool plain = power_of_two(a.heads);
  Size groups = std::min<Size>(a.key_heads(), 2);
  for (Size g = 1; g <= std::min<Size>(a.key_heads(), 3); ++g)
    if (power_of_two(g * each) == plain) groups = g;
  a.heads = groups * each;
  if (a.kv_heads) a.kv_heads = groups;
}

void reduce_rope(nn::RopePosition& rope, Size before, Size now) {
  if (rope.rotated == 0 || rope.rotated == before) {
    rope.rotated = std::min(rope.rotated, now);
    return;
  }
  // A part of a head: still a part, if there is room for one; more than a pair for NTK. Elements
  // turn in pairs, so of an odd width the last one stays.
  const Size part = rope.rotated * now / before / 2 * 2, pairs = now / 2 * 2;
  rope.rotated = std::clamp<Size>(part, std::min<Size>(4, pairs), pairs);
}

// The factors of the first pairs, one for each that is left.
void reduce_factors(nn::RopePosition& rope, Size now) {
  if (auto* list = std::get_if<nn::FactorScaling>(&rope.scaling))
    list->factors.resize(static_cast<std::size_t>((rope.rotated > 0 ? rope.rotated : now) / 2), 1);
}

// Windows and positions, for heads that were `before` wide and are `now`.
nn::LayerAttention reduced_reach(const model::ModelConfig& m, nn::LayerAttention a, Size before,
                                 Size now) {
  const Size context = model::positions_of(m);
  for (std::optional<Size>* reach : {&a.look_back, &a.look_ahead})
    if (*reach) *reach = std::min(**reach, std::max<Size>(context / 3, 1));
  if (auto* rope = std::get_if<nn::RopePosition>(&a.position)) {
    reduce_rope(*rope, before, now);
    reduce_factors(*rope, now);
  }
  if (auto* t5 = std::get_if<nn::T5Position>(&a.position))
    t5->max_distance = std::min(t5->max_distance, std::max(context / 2, t5->buckets / 2 + 1));
  return a;
}

void reduce_attention(model::ModelConfig& m) {
  nn::AttentionConfig& a = m.attention;
  const Size before = a.head_width.value_or(m.width / a.heads);
  reduce_heads(a);
  // An even width stays even: sine waves and two-way layers come in pairs.
  const bool odd = !a.head_width && m.width % 2 == 0 && a.heads % 2 != 0 && before % 2 != 0;
  const Size now = cut(before) + (odd ? 1 : 0);
  if (a.head_width) {
    a.head_width = now;
    m.width = cut(m.width, 2 * kUnit);
  } else {
    m.width = a.heads * now;
  }
  if (a.score_width) a.score_width = cut(*a.score_width);
  a = nn::with_layer(a, reduced_reach(m, nn::layer_part(a), before, now));
  for (nn::LayerAttention& own : m.attention_layers) own = reduced_reach(m, own, before, now);
}

}  // namespace

model::ModelConfig reduced(const recipe::Recipe& recipe) {
  model::ModelConfig m = recipe.model;
  assume_sizes(recipe, m);
  model::validate(m);
  const bool prefixes = m.kind == model::Kind::birnn && m.task == model::Task::language;
  m.sizes.context = std::min(m.sizes.context, prefixes ? kPrefixContext : kContext);
  const Size layers = m.layers;
  reduce_layers(m);
  if (m.recurrent() && m.kind != model::Kind::rnn_seq2seq)
    m.width = cut(m.width, 2 * kUnit);
  else
    reduce_attention(m);
  if (m.ffn_width > 0) m.ffn_width = cut(m.ffn_width, 4 * kUnit);
  if (m.moe) {
    m.moe->experts = std::min(m.moe->experts, std::max(kExperts, m.moe->active));
    m.moe->shared = std::min(m.moe->shared, kSharedExperts);
    // A layer of each sort, if there are both.
    if (m.moe->dense_layers > 0)
      m.moe->dense_layers = m.moe->dense_layers < layers ? m.layers - 1 : m.layers;
    m.moe->dense_width = m.moe->dense_width > 0 ? cut(m.moe->dense_width, 4 * kUnit) : 0;
  }
  m.init = nn::InitRule::fan_in;
  m.init_branches = true;
  model::validate(m);
  return m;
}

}  // namespace heddle::check
