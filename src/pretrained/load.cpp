#include "pretrained/load.h"

#include <filesystem>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/json/json.h"
#include "nn/finite.h"
#include "pretrained/common.h"
#include "pretrained/names.h"

namespace heddle::pretrained {
namespace {

constexpr std::size_t kMaxConfig = std::size_t{16} << 20;

bool is_gguf(const std::string& path) { return path.ends_with(".gguf"); }

std::string config_of(const std::string& directory) { return directory + "/config.json"; }

Opened open_directory(const std::string& path) {
  Opened opened;
  opened.path = path;
  const std::string where = config_of(path);
  const io::Json config = io::Json::read(where, {.max_bytes = kMaxConfig});
  opened.family = &family(config.at("model_type").string(), where);
  const io::TomlDocument settings = io::TomlDocument::of_json(config);
  pass_over_common(settings.root());
  opened.config = opened.family->read(settings.root());
  settings.finish();
  opened.files = safetensors_of(path);
  return opened;
}

Opened open_gguf(const std::string& path) {
  Opened opened;
  opened.path = path;
  opened.gguf = true;
  auto file = std::make_shared<const io::GgufFile>(path);
  const std::string architecture = file->metadata().string("general.architecture");
  opened.family = &gguf_family(architecture, path);
  const io::TomlDocument settings = io::TomlDocument::of_gguf(file->metadata(), architecture, path);
  opened.config = opened.family->read(settings.root());
  settings.finish();
  // The tables are as large as they are, whatever the metadata say of the vocabulary.
  const io::GgufTensor& embedding = file->tensor("token_embd.weight");
  if (embedding.shape.size() == 2) opened.config.sizes.vocabulary = embedding.shape[0];
  opened.config.tied = !file->contains("output.weight");
  opened.files = weights_of(std::move(file));
  return opened;
}

// "eos_token_id": one id, or several.
std::vector<std::int32_t> ends_of(const io::Json& config, std::int64_t vocabulary) {
  if (!config.has("eos_token_id")) return {};
  const io::Json ids = config.at("eos_token_id");
  std::vector<std::int32_t> ends;
  const auto add = [&](const io::Json& id) {
    ends.push_back(static_cast<std::int32_t>(id.integer(0, vocabulary - 1)));
  };
  if (!ids.is_array())
    add(ids);
  else
    for (std::size_t i = 0; i < ids.size(); ++i) add(ids.at(i));
  return ends;
}

// As generation_config.json says, or config.json, or the tokenizer's files.
std::vector<std::int32_t> ends_of(const Opened& opened, const text::Tokenizer& tokenizer) {
  if (!opened.gguf)
    for (const char* name : {"/generation_config.json", "/config.json"}) {
      const std::string file = opened.path + name;
      if (!io::file_exists(file)) continue;
      const auto ends =
          ends_of(io::Json::read(file, {.max_bytes = kMaxConfig}), opened.config.sizes.vocabulary);
      if (!ends.empty()) return ends;
    }
  if (const auto end = tokenizer.end()) return {*end};
  return {};
}

}  // namespace

bool is_pretrained(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return io::file_exists(config_of(path));
  return is_gguf(path);
}

Opened open(const std::string& path) {
  Opened opened = is_gguf(path) ? open_gguf(path) : open_directory(path);
  model::validate(opened.config);
  return opened;
}

std::unique_ptr<model::Model> build(const Opened& opened, const model::BuildOptions& options) {
  NamedWeights weights(*opened.family, *opened.files, opened.config);
  model::BuildOptions with = options;
  with.source = weights.source();
  auto model = model::build_model(opened.config, with);
  weights.finish();
  nn::check_parameters(model->parameters(), opened.files->where());
  return model;
}

Loaded load(const std::string& path, const model::BuildOptions& options) {
  const Opened opened = open(path);
  Loaded loaded;
  loaded.config = opened.config;
  loaded.model = build(opened, options);
  text::PretrainedTokenizer own = text::load_pretrained_tokenizer(path);
  loaded.ends = ends_of(opened, *own.tokenizer);
  loaded.codec = std::make_shared<const data::Codec>(data::CodecParts{
      .task = opened.config.task,
      .source = std::move(own.tokenizer),
      .length = opened.config.sizes.context,
      .specials = text::SpecialsInText::plain,
      .framed = true,
  });
  loaded.templates = std::move(own.templates);
  return loaded;
}

}  // namespace heddle::pretrained
