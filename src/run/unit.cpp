#include "run/unit.h"

#include <algorithm>

#include "heddle/error.h"
#include "language/language.h"

namespace heddle::run {

Unit unit_of_images(const model::ModelConfig& vit) {
  const std::int64_t patches = (vit.sizes.height / vit.patch) * (vit.sizes.width / vit.patch);
  return {mark("images"), std::max<std::int64_t>(1, patches)};
}

Unit unit_read(const model::ModelConfig& model, const data::Codec& codec) {
  if (model.kind == model::Kind::vit) {
    model::ModelConfig sized = model;
    sized.sizes = codec.sizes();
    return unit_of_images(sized);
  }
  const bool words = model.task == model::Task::tag && codec.source().kind() == "word";
  return {words ? mark("words") : mark("tokens")};
}

Unit unit_of_run(const std::string& directory, const model::ModelConfig& model) {
  if (model.kind != model::Kind::vit && model.task != model::Task::tag) return {mark("tokens")};
  try {
    return unit_read(model, *data::Codec::load(directory));
  } catch (const Error&) {
    return {mark("tokens")};
  }
}

std::string Unit::title() const { return tr(name); }

std::string Unit::rate_title() const {
  if (name == "images") return tr("images/s");
  return name == "words" ? tr("words/s") : tr("tokens/s");
}

std::string Unit::told(const std::string& number) const {
  if (name == "images") return tr("{} images", number);
  return name == "words" ? tr("{} words", number) : tr("{} tokens", number);
}

std::string Unit::rate_told(const std::string& number) const {
  if (name == "images") return tr("{} images/s", number);
  return name == "words" ? tr("{} words/s", number) : tr("{} tokens/s", number);
}

std::string_view unit_judged(const model::ModelConfig& model) {
  switch (model.task) {
    case model::Task::tag: return mark("words");
    case model::Task::classify:
      return model.kind == model::Kind::vit ? mark("images") : mark("texts");
    case model::Task::language:
    case model::Task::translate:
    case model::Task::masked:
    case model::Task::embed: break;
  }
  return mark("tokens");
}

}  // namespace heddle::run
