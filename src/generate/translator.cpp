#include "heddle/translator.h"

#include <utility>

#include "generate/tasks/translate.h"
#include "run/load_run.h"

namespace heddle {

Translator::Translator(const std::string& directory, DType precision, Device device)
    : Translator(TrainedModel(directory, precision, device)) {}

Translator::Translator(TrainedModel model) : model_(std::move(model)) {
  run::require_task(model_, model::Task::translate);
}

std::vector<Translation> Translator::translate(const Texts& texts,
                                               const TranslationOptions& options) const {
  return generate::translate(model_.network(), *run::loaded(model_).codec, texts.all(), options,
                             model_.precision());
}

Translation Translator::translate(std::string_view text, const TranslationOptions& options) const {
  return std::move(translate(Texts{text}, options).front());
}

}  // namespace heddle
