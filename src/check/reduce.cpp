#include "check/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "data/job.h"

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

void reduce_layers(model::ModelConfig& m) {
  const Size first = m.layers, second = m.layers_of_decoder();
  m.layers = first < second ? 1 : std::min<Size>(first, 2);
  if (m.two_stacks()) m.decoder_layers = second < first ? 1 : std::min<Size>(second, 2);
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
  const Size context = model::positions_of(m);
  for (std::optional<Size>* reach : {&a.look_back, &a.look_ahead})
    if (*reach) *reach = std::min(**reach, std::max<Size>(context / 3, 1));
  if (auto* rope = std::get_if<nn::RopePosition>(&a.position)) reduce_rope(*rope, before, now);
  if (auto* t5 = std::get_if<nn::T5Position>(&a.position))
    t5->max_distance = std::min(t5->max_distance, std::max(context / 2, t5->buckets / 2 + 1));
}

}  // namespace

model::ModelConfig reduced(const recipe::Recipe& recipe) {
  model::ModelConfig m = recipe.model;
  assume_sizes(recipe, m);
  model::validate(m);
  const bool prefixes = m.kind == model::Kind::birnn && m.task == model::Task::language;
  m.sizes.context = std::min(m.sizes.context, prefixes ? kPrefixContext : kContext);
  reduce_layers(m);
  if (m.recurrent() && m.kind != model::Kind::rnn_seq2seq)
    m.width = cut(m.width, 2 * kUnit);
  else
    reduce_attention(m);
  if (m.ffn_width > 0) m.ffn_width = cut(m.ffn_width, 4 * kUnit);
  if (m.moe) {
    m.moe->experts = std::min(m.moe->experts, std::max(kExperts, m.moe->active));
    m.moe->shared = std::min(m.moe->shared, kSharedExperts);
  }
  m.init = nn::InitRule::fan_in;
  m.init_branches = true;
  model::validate(m);
  return m;
}

}  // namespace heddle::check
