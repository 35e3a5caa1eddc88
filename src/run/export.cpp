#include "heddle/export.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "heddle/error.h"
#include "io/gguf/quantize.h"
#include "pretrained/export/export.h"
#include "pretrained/load.h"
#include "run/load_run.h"
#include "run/run_directory.h"

namespace heddle {
namespace {

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

DType directory_type(const std::string& name) {
  for (const auto& [known, type] :
       {std::pair{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}})
    if (name == known) return type;
  fail(ErrorCode::invalid_argument, "export", "option type", "f32, f16 or bf16 in a directory",
       name);
}

io::BlockType gguf_type(const std::string& name) {
  for (const io::BlockFormat& format : io::kBlockFormats)
    if (format.name == in_capitals(name) && io::can_quantize(format.type)) return format.type;
  fail(ErrorCode::invalid_argument, "export", "option type", "one of " + io::writable_types_text(),
       name);
}

void require_free(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    fail(ErrorCode::io, path, "is there already", "a path that is free");
}

void require_decoder(const model::ModelConfig& config, const std::string& where) {
  if (config.kind != model::Kind::decoder || config.task != model::Task::language)
    fail(ErrorCode::invalid_argument, where, "no family that is written has this kind",
         "kind = \"decoder\"", std::string(model::to_string(config.kind)));
}

}  // namespace

ExportResult export_model(const TrainedModel& model, const std::string& path,
                          const ExportOptions& options) {
  const run::LoadedRun& run = run::loaded(model);
  require_decoder(run.model->config(), run.directory);
  require_free(path);
  const pretrained::ExportSource source{
      .model = *run.model,
      .tokenizer = run.codec->source(),
      .ends = run.ends,
      .templates = run.templates,
      .path = run::is_run(run.directory) ? "" : run.directory,
  };
  const pretrained::Exported done =
      options.format == ExportFormat::gguf
          ? pretrained::write_gguf(source, path, gguf_type(options.type))
          : pretrained::write_directory(source, path, directory_type(options.type));
  return {.family = done.family, .tensors = done.tensors};
}

}  // namespace heddle
