#include "recipe/shipped/starter.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heddle/error.h"
#include "io/errors.h"
#include "language/language.h"
#include "language/layout.h"

namespace heddle::recipe {

namespace {

struct DataWords {
  StarterData data;
  std::string_view name, meaning;
};
constexpr std::array kData = {
    DataWords{StarterData::text, "text", mark("a text, which the model learns to go on with")},
    DataWords{StarterData::pairs, "pairs", mark("lines of source TAB target, to translate")},
    DataWords{StarterData::tags, "tags",
              mark("lines of word TAB tag, a blank line between sentences")},
    DataWords{StarterData::labelled, "labelled", mark("lines of label TAB text, to classify")},
    DataWords{StarterData::images, "images", mark("a folder of PNG or JPEG files for each class")},
};

struct SizeWords {
  StarterSize size;
  std::string_view name, meaning;
  int layers, width, heads, context, batch, steps;
};
constexpr std::array kSizes = {
    SizeWords{.size = StarterSize::tiny,
              .name = "tiny",
              .meaning = mark("seconds to minutes: to see that everything works"),
              .layers = 2,
              .width = 64,
              .heads = 2,
              .context = 32,
              .batch = 16,
              .steps = 300},
    SizeWords{.size = StarterSize::small,
              .name = "small",
              .meaning = mark("minutes on two cores: to learn and to compare"),
              .layers = 4,
              .width = 128,
              .heads = 4,
              .context = 64,
              .batch = 32,
              .steps = 2000},
    SizeWords{.size = StarterSize::medium,
              .name = "medium",
              .meaning = mark("hours on two cores: results that read well"),
              .layers = 6,
              .width = 384,
              .heads = 6,
              .context = 256,
              .batch = 64,
              .steps = 5000},
};

const SizeWords& words_of(StarterSize size) { return kSizes[static_cast<std::size_t>(size)]; }

template <class Table>
const auto& by_name(const Table& table, std::string_view name, std::string_view option) {
  std::string list;
  for (const auto& row : table) {
    if (row.name == name) return row;
    list += (list.empty() ? "" : ", ") + std::string(row.name);
  }
  fail(ErrorCode::invalid_argument, option, "is not known", "one of " + list, io::shown(name));
}

// "key = value" and its meaning in a column of its own.
std::string line(const std::string& key, const std::string& value, std::string_view meaning = {}) {
  std::string text = key + " = " + value;
  if (meaning.empty()) return text + "\n";
  text.resize(std::max<std::size_t>(text.size() + 2, 28), ' ');
  return text + "# " + tr(meaning) + "\n";
}

std::string toml_string(std::string_view text) { return nlohmann::json(std::string(text)).dump(); }
std::string number(int value) { return std::to_string(value); }

std::string_view kind_of(StarterData data) {
  switch (data) {
    case StarterData::text: return "decoder";
    case StarterData::pairs: return "encoder-decoder";
    case StarterData::images: return "vit";
    case StarterData::tags:
    case StarterData::labelled: break;
  }
  return "encoder";
}

std::string model_part(const Starter& s) {
  const SizeWords& size = words_of(s.size);
  std::string text = "[model]\n";
  text += line("kind", toml_string(kind_of(s.data)),
               mark("decoder, encoder, encoder-decoder, vit, rnn, birnn or rnn-seq2seq"));
  if (s.data == StarterData::tags) text += line("task", "\"tag\"");
  if (s.data == StarterData::labelled) text += line("task", "\"classify\"");
  text += line("layers", number(size.layers));
  text += line("width", number(size.width), mark("of every token's vector"));
  if (s.data == StarterData::images)
    text += line("patch", "4", mark("side of a patch in pixels; must divide the image's sides"));
  text += line("norm", "\"rms\"", mark("layer or rms"));
  text += line("ffn", "\"swiglu\"", mark("relu, gelu, gelu-tanh, swiglu or moe"));
  text += line("dropout", "0.1", mark("0 for none; helps where data is scarce"));
  text += "\n[model.attention]\n";
  text += line("heads", number(size.heads), mark("must divide the width"));
  text += line("position", s.data == StarterData::images ? "\"learned\"" : "\"rope\"",
               mark("none, sinusoidal, learned, t5, alibi or rope"));
  if (s.data == StarterData::text) {
    text += line("# kv_heads", "1", mark("fewer keys and values: a smaller cache"));
    text += line("# look_back", "16", mark("earlier tokens that a token may see; absent: all"));
  }
  return text;
}

std::string data_part(const Starter& s) {
  const SizeWords& size = words_of(s.size);
  std::string text = "\n[data]\n";
  switch (s.data) {
    case StarterData::text:
      text += line("text", toml_string(s.path), mark("a file, or a list of files"));
      text +=
          line("tokenizer", "\"char\"", mark("char, byte, word, bpe:4000, or a tokenizer.json"));
      text += line("context", number(size.context), mark("tokens that are read at once"));
      break;
    case StarterData::pairs:
      text += line("pairs", toml_string(s.path), mark("or source and target, a file each"));
      text +=
          line("tokenizer", "\"bpe:4000\"", mark("char, byte, word, bpe:N, or a tokenizer.json"));
      break;
    case StarterData::tags:
      text += line("tags", toml_string(s.path));
      text += line("tokenizer", "\"word\"", mark("or bpe:N"));
      break;
    case StarterData::labelled:
      text += line("labelled", toml_string(s.path));
      text += line("tokenizer", "\"word\"", mark("or bpe:N"));
      break;
    case StarterData::images:
      text += line("image_folder", toml_string(s.path));
      text += line("flip", "false", mark("mirror half of the images in training"));
      break;
  }
  text += line("validation_share", "0.1", mark("held out to see how well it generalises"));
  return text;
}

std::string train_part(const Starter& s) {
  const SizeWords& size = words_of(s.size);
  std::string text = "\n[train]\n";
  text += line("steps", number(size.steps));
  text += line("batch", number(size.batch), mark("sequences, pairs or images of a step"));
  text += line("learning_rate", s.size == StarterSize::medium ? "1e-3" : "2e-3");
  text += line("warmup", number(size.steps / 20), mark("steps until the rate is reached"));
  text += line("precision", "\"fp32\"", mark("or bf16: faster, most of all where the CPU has AMX"));
  text += line("seed", "1", mark("the same seed gives the same model, to the bit"));
  return text;
}

}  // namespace

std::string_view to_string(StarterData data) { return kData[static_cast<std::size_t>(data)].name; }
std::string_view to_string(StarterSize size) { return words_of(size).name; }
std::string_view explain(StarterData data) { return kData[static_cast<std::size_t>(data)].meaning; }
std::string_view explain(StarterSize size) { return words_of(size).meaning; }

StarterData starter_data(std::string_view name) { return by_name(kData, name, "data").data; }
StarterSize starter_size(std::string_view name) { return by_name(kSizes, name, "size").size; }

std::string starter_recipe(const Starter& s, const std::string& file) {
  const auto command = [&file](const char* name, const std::string& meaning) {
    return padded("#   heddle " + std::string(name) + " " + file, 28) + "  " + meaning + "\n";
  };
  return "# " + tr("A {} model of {}.", to_string(s.size), tr(explain(s.data))) + "\n#\n" +
         command("data", tr("what the model will see")) + command("plan", tr("memory and time")) +
         command("check", tr("its arithmetic against float64")) + "#   heddle train " + file +
         "\n#\n# " + tr("Every key: heddle help recipes") + "\n" + model_part(s) + data_part(s) +
         train_part(s);
}

std::string derived_recipe(const std::string& base, const std::string& toml,
                           const std::string& file) {
  std::string text =
      "# " + tr("Keys that are absent here are as in {}.", base) + "\n#\n#   heddle train " + file +
      "\nbase = " + toml_string(base) + "\n\n# " +
      tr("Its keys. To change one, take the \"# \" away before it and before its [table].") + "\n";
  std::istringstream lines(toml);
  for (std::string one; std::getline(lines, one);) text += one.empty() ? "\n" : "# " + one + "\n";
  return text;
}

}  // namespace heddle::recipe
