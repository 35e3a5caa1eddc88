#include "pretrained/load.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/json/json.h"
#include "nn/finite.h"
#include "pretrained/beside/generation.h"
#include "pretrained/beside/images.h"
#include "pretrained/names/names.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/heads.h"
#include "pretrained/weights/gguf_tensors.h"
#include "text/pretrained/pretrained.h"

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
  if (opened.family->any_image_size) take_image_size(path, opened.config);
  const model::Task task = opened.config.task;
  if (task == model::Task::tag || task == model::Task::classify) {
    opened.labels = read_labels(config);
    opened.config.sizes.classes = std::ssize(opened.labels);
  }
  opened.files = safetensors_of(path);
  if (opened.family->look_at != nullptr) opened.family->look_at(*opened.files, opened.config);
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
  opened.files = weights_of(std::move(file));
  if (opened.family->look_at != nullptr)
    opened.family->look_at(*opened.files, opened.config);
  else
    read_from_tensors(*opened.files, opened.config);
  return opened;
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
  NamedWeights weights(*opened.family, *opened.files, opened.config, options.dtype);
  model::BuildOptions with = options;
  with.source = weights.source();
  auto model = model::build_model(opened.config, with);
  weights.finish();
  nn::check_parameters(model->parameters(), opened.files->where());
  return model;
}

std::shared_ptr<const data::Codec> codec_of(const Opened& opened) {
  if (opened.config.kind == model::Kind::vit)
    return std::make_shared<const data::Codec>(
        data::CodecParts{.task = opened.config.task,
                         .labels = opened.labels,
                         .image = read_image_facts(opened.path, opened.config)});
  text::PretrainedTokenizer own = text::load_pretrained_tokenizer(opened.path);
  const text::Tokenizer& last = own.target ? *own.target : *own.tokenizer;
  std::vector<std::int32_t> ends = ends_of(opened, last);
  return std::make_shared<const data::Codec>(data::CodecParts{
      .task = opened.config.task,
      .source = std::move(own.tokenizer),
      .target = std::move(own.target),
      .labels = opened.labels,
      .length = opened.config.sizes.context,
      .specials = text::SpecialsInText::plain,
      .framed = true,
      .writing =
          opened.config.task == model::Task::translate ? writing_of(opened, ends) : data::Writing{},
      .rows = opened.config.sizes.vocabulary,
      .ends = std::move(ends),
      .templates = std::move(own.templates),
  });
}

Loaded load(const std::string& path, const model::BuildOptions& options) {
  return load(open(path), options);
}

Loaded load(const Opened& opened, const model::BuildOptions& options) {
  Loaded loaded;
  loaded.config = opened.config;
  loaded.model = build(opened, options);
  loaded.codec = codec_of(opened);
  return loaded;
}

}  // namespace heddle::pretrained
