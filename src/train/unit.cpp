#include "train/unit.h"

#include <algorithm>

#include "language/language.h"

namespace heddle::train {

Unit unit_of_images(const model::ModelConfig& vit) {
  const std::int64_t patches = (vit.sizes.height / vit.patch) * (vit.sizes.width / vit.patch);
  return {mark("images"), std::max<std::int64_t>(1, patches)};
}

Unit unit_read(const model::ModelConfig& model, const data::Codec& codec) {
  if (model.kind == model::Kind::vit) return unit_of_images(model);
  const bool words = model.task == model::Task::tag && codec.source().kind() == "word";
  return {words ? mark("words") : mark("tokens")};
}

std::string_view unit_judged(const model::ModelConfig& model) {
  switch (model.task) {
    case model::Task::tag: return mark("words");
    case model::Task::classify:
      return model.kind == model::Kind::vit ? mark("images") : mark("texts");
    case model::Task::language:
    case model::Task::translate:
    case model::Task::masked: break;
  }
  return mark("tokens");
}

}  // namespace heddle::train
