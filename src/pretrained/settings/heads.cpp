#include "pretrained/settings/heads.h"

#include <array>
#include <span>
#include <utility>

namespace heddle::pretrained {
namespace {

using model::HeadTransform;
using model::Task;

constexpr std::int64_t kMostLabels = 1 << 20;

using Ending = std::pair<std::string_view, Task>;

constexpr std::array<Ending, 5> kEndings = {{
    {"Model", Task::embed},
    {"ForMaskedLM", Task::masked},
    {"ForPreTraining", Task::masked},  // and whether two texts follow each other, which is left out
    {"ForSequenceClassification", Task::classify},
    {"ForTokenClassification", Task::tag},
}};

constexpr std::array<std::pair<std::string_view, HeadTransform>, 9> kFunctions = {{
    {"tanh", HeadTransform::tanh},
    {"relu", HeadTransform::relu},
    {"gelu", HeadTransform::gelu},
    {"gelu_new", HeadTransform::gelu_tanh},
    {"gelu_pytorch_tanh", HeadTransform::gelu_tanh},
    {"gelu_fast", HeadTransform::gelu_tanh},
    {"quick_gelu", HeadTransform::quick_gelu},
    {"silu", HeadTransform::silu},
    {"swish", HeadTransform::silu},
}};

Task task_among(const io::TomlTable& settings, std::string_view stem,
                std::span<const Ending> endings) {
  if (!settings.has("architectures")) return Task::embed;
  const std::vector<std::string> names = settings.strings("architectures");
  std::string known;
  for (const auto& [ending, task] : endings) {
    const std::string name = std::string(stem) + std::string(ending);
    if (names.size() == 1 && names.front() == name) {
      const std::string kind = settings.string_or("problem_type", "single_label_classification");
      if (task == Task::classify && kind != "single_label_classification")
        settings.refuse("problem_type", "single_label_classification: one label of several");
      return task;
    }
    known += (known.empty() ? "" : ", ") + name;
  }
  settings.refuse("architectures", "one of " + known);
}

}  // namespace

model::Task read_task(const io::TomlTable& settings, std::string_view stem) {
  return task_among(settings, stem, kEndings);
}

model::Task read_image_task(const io::TomlTable& settings, std::string_view stem,
                            std::string_view more) {
  std::vector<Ending> endings = {{"Model", Task::embed},
                                 {"ForImageClassification", Task::classify}};
  if (!more.empty()) endings.emplace_back(more, Task::classify);
  return task_among(settings, stem, endings);
}

std::vector<std::string> read_labels(const io::Json& config) {
  if (!config.has("id2label")) return {"LABEL_0", "LABEL_1"};
  const io::Json names = config.at("id2label");
  const auto count = static_cast<std::int64_t>(names.keys().size());
  if (count < 2 || count > kMostLabels)
    names.refuse("2 labels or more: a model with one gives a number, not a label");
  std::vector<std::string> labels;
  labels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t id = 0; id < count; ++id)
    labels.push_back(names.at(std::to_string(id)).string());
  return labels;
}

model::HeadTransform read_head_transform(const io::TomlTable& settings, std::string_view key,
                                         std::string_view fallback) {
  const std::string name = settings.string_or(key, fallback);
  std::string known;
  for (const auto& [theirs, function] : kFunctions) {
    if (theirs == name) return function;
    known += (known.empty() ? "" : ", ") + std::string(theirs);
  }
  settings.refuse(key, "one of " + known);
}

}  // namespace heddle::pretrained
