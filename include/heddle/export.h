// A model written for other systems: as a directory that transformers loads, or as the GGUF file of
// llama.cpp, with its tokenizer. Where no family of the format has the model's choices together,
// the Error names those in which the nearest one differs.
//
//   const heddle::TrainedModel model("runs/llama-style");
//   heddle::export_model(model, "model.gguf", {.format = heddle::ExportFormat::gguf, .type =
//   "q8_0"});
#pragma once

#include <cstdint>
#include <string>

#include "heddle/trained_model.h"

namespace heddle {

enum class ExportFormat : std::uint8_t {
  hf,    // a directory: config.json, model.safetensors, the tokenizer's files
  gguf,  // one file
};

struct ExportOptions {
  ExportFormat format = ExportFormat::hf;
  // Of the weights: f32, f16, bf16; GGUF also q8_0, q4_0, q4_1, q4_k and q6_k, for matrices whose
  // rows are whole blocks.
  std::string type = "f32";
};

struct ExportResult {
  std::string family;  // as the file calls it: "llama"
  std::int64_t tensors = 0;
};

// `path` must not be there yet.
ExportResult export_model(const TrainedModel& model, const std::string& path,
                          const ExportOptions& options = {});

}  // namespace heddle
