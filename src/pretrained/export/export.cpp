#include "pretrained/export/export.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_write.h"
#include "io/gguf/quantize.h"
#include "io/json/json.h"
#include "io/safetensors/safetensors.h"
#include "ops/copy/copy.h"
#include "pretrained/export/export_plan.h"
#include "pretrained/load.h"
#include "pretrained/settings/common.h"
#include "pretrained/weights/gguf_tensors.h"
#include "text/pretrained/to_gguf.h"

namespace heddle::pretrained {
namespace {

using Document = nlohmann::ordered_json;

Document json_of(const Settings& settings) {
  Document object = Document::object();
  for (const Setting& setting : settings)
    object[setting.key] = std::visit(
        [](const auto& value) -> Document {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Settings>)
            return json_of(value);
          else
            return value;
        },
        setting.value);
  return object;
}

model::ModelConfig read_json(const Family& family, const Settings& settings, const WeightFiles&) {
  const io::Json json = io::Json::parse(json_of(settings).dump(), std::string(family.name));
  const io::TomlDocument document = io::TomlDocument::of_json(json);
  model::ModelConfig config = family.read(document.root());
  document.finish();
  return config;
}

// The metadata of an architecture, in the types that llama.cpp asks for.
struct GgufSetting {
  io::GgufValue operator()(std::nullptr_t) const { return false; }
  io::GgufValue operator()(bool value) const { return value; }
  io::GgufValue operator()(std::int64_t value) const { return static_cast<std::uint32_t>(value); }
  io::GgufValue operator()(double value) const { return static_cast<float>(value); }
  io::GgufValue operator()(const std::string& value) const { return value; }
  io::GgufValue operator()(const std::vector<double>& values) const {
    return io::GgufArray(std::vector<float>(values.begin(), values.end()));
  }
  io::GgufValue operator()(const Settings&) const { return false; }
  template <class T>
  io::GgufValue operator()(const std::vector<T>& values) const {
    return io::GgufArray(values);
  }
};

io::GgufMetadata metadata_of(const Family& family, const Settings& settings) {
  const std::string architecture(family.name);
  io::GgufMetadata metadata(architecture);
  metadata.add("general.architecture", architecture);
  for (const Setting& setting : settings)
    metadata.add(architecture + "." + setting.key, std::visit(GgufSetting{}, setting.value));
  return metadata;
}

model::ModelConfig read_metadata(const Family& family, const Settings& settings,
                                 const WeightFiles& weights) {
  const io::GgufMetadata metadata = metadata_of(family, settings);
  const io::TomlDocument document =
      io::TomlDocument::of_gguf(metadata, family.name, std::string(family.name));
  model::ModelConfig config = family.read(document.root());
  document.finish();
  read_from_tensors(weights, config);
  return config;
}

std::string family_of(const std::string& path) {
  return path.empty() ? std::string() : std::string(open(path).family->name);
}

// The ids of special tokens, as config.json and generation_config.json have them.
Document special_ids(const ExportSource& source) {
  const text::SpecialIds& ids = source.tokenizer.specials();
  const auto value = [](std::optional<std::int32_t> id) -> Document {
    return id ? Document(*id) : Document(nullptr);
  };
  Document object;
  object["bos_token_id"] = value(ids.begin);
  object["eos_token_id"] = nullptr;
  if (source.ends.size() == 1) object["eos_token_id"] = source.ends.front();
  if (source.ends.size() > 1) object["eos_token_id"] = source.ends;
  object["pad_token_id"] = value(ids.pad);
  return object;
}

std::string config_text(const ExportPlan& plan, const ExportSource& source, DType type) {
  Document config;
  config["model_type"] = plan.family->name;
  config["architectures"] = {plan.family->architecture};
  config["dtype"] = type == DType::bf16 ? "bfloat16" : type == DType::f16 ? "float16" : "float32";
  config.update(json_of(plan.settings));
  config.update(special_ids(source));
  return config.dump(2) + "\n";
}

// The names of special tokens by their ids, out of the tokenizer's own file.
std::string tokenizer_config_text(const ExportSource& source, const Document& tokenizer) {
  const auto name = [&](std::optional<std::int32_t> id) -> Document {
    for (const Document& token : tokenizer.at("added_tokens"))
      if (id && token.at("id") == *id) return token.at("content");
    return nullptr;
  };
  const text::SpecialIds& ids = source.tokenizer.specials();
  Document config;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["clean_up_tokenization_spaces"] = false;
  const std::array<std::pair<const char*, std::optional<std::int32_t>>, 5> all = {
      {{"bos_token", ids.begin},
       {"eos_token", source.ends.empty() ? ids.end : std::optional(source.ends.front())},
       {"pad_token", ids.pad},
       {"unk_token", ids.unknown},
       {"mask_token", ids.mask}}};
  for (const auto& [key, id] : all)
    if (const Document token = name(id); !token.is_null()) config[key] = token;
  for (const text::NamedTemplate& t : source.templates)
    if (t.name == "default") config["chat_template"] = t.text;
  return config.dump(2, ' ', false, Document::error_handler_t::replace) + "\n";
}

// Begin and end tokens that a text gets, where the tokenizer's file does not say it itself.
void add_frame(Document& tokenizer, const text::Frame& frame) {
  if (frame.single.size() < 2 || !tokenizer.at("post_processor").is_null()) return;
  const auto content = [&](std::int32_t id) -> std::string {
    for (const Document& token : tokenizer.at("added_tokens"))
      if (token.at("id") == id) return token.at("content");
    return {};
  };
  Document tokens = Document::object();
  const auto parts = [&](const std::vector<text::FramePart>& all) {
    Document list = Document::array();
    for (const text::FramePart& part : all) {
      using Kind = text::FramePart::Kind;
      if (part.kind != Kind::token) {
        list.push_back(
            {{"Sequence",
              {{"id", part.kind == Kind::first ? "A" : "B"}, {"type_id", part.segment}}}});
        continue;
      }
      const std::string name = content(part.id);
      list.push_back({{"SpecialToken", {{"id", name}, {"type_id", part.segment}}}});
      tokens[name] = {{"id", name}, {"ids", {part.id}}, {"tokens", {name}}};
    }
    return list;
  };
  Document single = parts(frame.single), pair = parts(frame.pair);
  tokenizer["post_processor"] = {{"type", "TemplateProcessing"},
                                 {"single", std::move(single)},
                                 {"pair", std::move(pair)},
                                 {"special_tokens", std::move(tokens)}};
}

// As they are: whatever they say, they say of the same tokens.
bool copy_tokenizer(const std::string& from, const std::string& to) {
  if (!io::directory_exists(from)) return false;
  constexpr std::size_t kMost = std::size_t{256} << 20;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "added_tokens.json", "tokenizer.model", "vocab.json", "merges.txt",
                           "vocab.txt", "chat_template.jinja", "generation_config.json"})
    if (const std::string file = from + "/" + name; io::file_exists(file))
      io::write_file_atomic(to + "/" + name, io::read_file(file, kMost));
  return true;
}

void write_tokenizer(const ExportSource& source, const std::string& directory) {
  if (!source.path.empty() && copy_tokenizer(source.path, directory)) return;
  Document tokenizer = Document::parse(source.tokenizer.to_json());
  add_frame(tokenizer, source.tokenizer.frame());
  io::write_file_atomic(directory + "/tokenizer.json", tokenizer.dump(2) + "\n");
  io::write_file_atomic(directory + "/tokenizer_config.json",
                        tokenizer_config_text(source, tokenizer));
  io::write_file_atomic(directory + "/generation_config.json", special_ids(source).dump(2) + "\n");
}

// The number of general.file_type: what most of the weights are.
std::uint32_t file_type(io::BlockType type) {
  using io::BlockType;
  switch (type) {
    case BlockType::f16: return 1;
    case BlockType::q4_0: return 2;
    case BlockType::q4_1: return 3;
    case BlockType::q8_0: return 7;
    case BlockType::q4_k: return 14;
    case BlockType::q6_k: return 18;
    case BlockType::bf16: return 32;
    default: return 0;
  }
}

io::BlockType type_of(const Shape& shape, io::BlockType wanted) {
  if (shape.rank() < 2) return io::BlockType::f32;
  return shape.back() % io::format_of(wanted).weights == 0 ? wanted : io::BlockType::f16;
}

void add_tokenizer(const ExportSource& source, io::GgufMetadata& metadata) {
  if (source.path.ends_with(".gguf")) {
    const io::GgufFile own(source.path);
    for (const auto& [key, value] : own.metadata().entries())
      if (text::is_gguf_tokenizer_key(key)) metadata.add(key, value);
    return;
  }
  text::add_gguf_tokenizer({.tokenizer = source.tokenizer,
                            .rows = source.model.config().sizes.vocabulary,
                            .ends = source.ends,
                            .templates = source.templates},
                           metadata);
}

}  // namespace

Exported write_directory(const ExportSource& source, const std::string& path, DType type) {
  const ExportPlan plan = plan_export(families(), family_of(source.path), source.model, read_json);
  io::make_directories(path);
  std::vector<io::TensorPlan> tensors;
  for (const std::string& name : plan.weights->names())
    tensors.push_back({.name = name, .dtype = type, .shape = plan.weights->shape(name)});
  io::SafetensorsWriter writer(path + "/model.safetensors", tensors, {{"format", "pt"}});
  for (const io::TensorPlan& tensor : tensors)
    writer.write(ops::cast(plan.weights->load(tensor.name, DType::f32), type));
  write_tokenizer(source, path);
  io::write_file_atomic(path + "/config.json", config_text(plan, source, type));
  writer.commit();
  return {std::string(plan.family->name), std::ssize(tensors)};
}

Exported write_gguf(const ExportSource& source, const std::string& path, io::BlockType type) {
  const ExportPlan plan =
      plan_export(gguf_families(), family_of(source.path), source.model, read_metadata);
  io::GgufMetadata metadata = metadata_of(*plan.family, plan.settings);
  metadata.add("general.file_type", file_type(type));
  add_tokenizer(source, metadata);
  std::vector<io::GgufTensorPlan> tensors;
  for (const std::string& name : plan.weights->names()) {
    const Shape shape = plan.weights->shape(name);
    tensors.push_back({.name = name, .type = type_of(shape, type), .shape = shape});
  }
  io::GgufWriter writer(path, tensors, std::move(metadata));
  for (const io::GgufTensorPlan& tensor : tensors)
    writer.write(plan.weights->load(tensor.name, DType::f32));
  writer.commit();
  return {std::string(plan.family->name), std::ssize(tensors)};
}

}  // namespace heddle::pretrained
