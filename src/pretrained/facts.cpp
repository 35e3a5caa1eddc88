#include "pretrained/facts.h"

#include "heddle/error.h"
#include "pretrained/beside/sentence.h"
#include "text/pretrained/pretrained.h"

namespace heddle::pretrained {
namespace {

using Choices = std::vector<std::pair<std::string, std::string>>;

void add_attention(const model::ModelConfig& c, Choices& out) {
  const nn::AttentionConfig& a = c.attention;
  out.emplace_back("attention.heads", std::to_string(a.heads));
  out.emplace_back("attention.kv_heads", std::to_string(a.key_heads()));
  out.emplace_back("attention.head_width",
                   std::to_string(a.head_width.value_or(c.width / a.heads)));
  out.emplace_back("attention.position", std::string(nn::to_string(a.position)));
  if (a.look_back) out.emplace_back("attention.look_back", std::to_string(*a.look_back));
  if (c.qk_norm != nn::QkNorm::none)
    out.emplace_back("qk_norm", std::string(nn::to_string(c.qk_norm)));
  if (c.attention_layers.empty()) return;
  std::int64_t windows = 0;
  for (const nn::LayerAttention& layer : c.attention_layers) windows += layer.look_back.has_value();
  out.emplace_back("attention layers with a window",
                   std::to_string(windows) + " / " + std::to_string(c.attention_layers.size()));
}

void add_input(const model::ModelConfig& c, Choices& out) {
  if (c.kind != model::Kind::vit) {
    out.emplace_back("vocabulary", std::to_string(c.sizes.vocabulary));
    out.emplace_back("context", std::to_string(c.sizes.context));
    return;
  }
  out.emplace_back("image", std::to_string(c.sizes.height) + " × " + std::to_string(c.sizes.width));
  out.emplace_back("patch", std::to_string(c.patch));
  out.emplace_back("extra_tokens", std::to_string(c.extra_tokens));
}

// The end of an encoder.
void add_end(const model::ModelConfig& c, Choices& out) {
  if (c.kind != model::Kind::encoder && c.kind != model::Kind::vit) return;
  out.emplace_back("task", std::string(model::to_string(c.task)));
  if (c.task == model::Task::classify)
    out.emplace_back("pooling", std::string(model::to_string(c.pooling)));
  if (c.head_transform != model::HeadTransform::none)
    out.emplace_back("head_transform", std::string(model::to_string(c.head_transform)));
}

// How an encoder's tokens become one vector, where files beside it say so.
void add_vectors(const Opened& opened, Facts& facts) {
  if (opened.config.kind != model::Kind::encoder) return;
  try {
    const SentenceSettings own = read_sentence_settings(opened.path);
    if (!own.pooling) return;
    const bool mean = *own.pooling == model::Pooling::mean;
    facts.choices.emplace_back("embed: pool", mean ? "mean" : "class");
    facts.choices.emplace_back("embed: normalised", own.normalise ? "true" : "false");
    if (own.longest)
      facts.choices.emplace_back("embed: longest text", std::to_string(*own.longest));
  } catch (const Error& e) {
    facts.choices.emplace_back("embed: refused", e.what());
  }
}

Choices choices_of(const model::ModelConfig& c) {
  Choices out = {{"kind", std::string(model::to_string(c.kind))},
                 {"layers", std::to_string(c.layers)},
                 {"width", std::to_string(c.width)},
                 {"norm", std::string(nn::to_string(c.norm))},
                 {"norm_place", std::string(nn::to_string(c.norm_place))},
                 {"ffn", std::string(nn::to_string(c.ffn))},
                 {"ffn_width", std::to_string(model::ffn_config(c).hidden)},
                 {"tied", c.tied ? "true" : "false"}};
  if (c.moe) {
    out.emplace_back("moe.experts", std::to_string(c.moe->experts));
    out.emplace_back("moe.active", std::to_string(c.moe->active));
  }
  add_attention(c, out);
  add_input(c, out);
  add_end(c, out);
  return out;
}

}  // namespace

Facts facts_of(const Opened& opened) {
  Facts facts;
  facts.family = std::string(opened.family->name);
  facts.choices = choices_of(opened.config);
  if (!opened.labels.empty())
    facts.choices.emplace_back("labels", std::to_string(opened.labels.size()));
  add_vectors(opened, facts);
  model::BuildOptions shapes_only;
  shapes_only.device = Device::meta;
  facts.parameters = model::build_model(opened.config, shapes_only)->parameters().count();
  for (const std::string& name : opened.files->names()) {
    TypeFacts& type = facts.types[opened.files->type(name)];
    ++type.tensors;
    type.bytes += opened.files->bytes(name);
  }
  if (opened.config.kind == model::Kind::vit) return facts;  // no texts
  try {
    const text::PretrainedTokenizer own = text::load_pretrained_tokenizer(opened.path);
    facts.tokenizer = std::string(own.tokenizer->kind());
    facts.tokens = own.tokenizer->vocabulary();
    for (const text::NamedTemplate& t : own.templates) facts.templates.push_back(t.name);
  } catch (const Error& e) {
    facts.refusal = e.what();
  }
  return facts;
}

}  // namespace heddle::pretrained
