// Models as others read them: what was trained or loaded here, written as a directory of
// config.json, safetensors and a tokenizer, or as a GGUF file. Everything goes through the tables
// by which such files are read (family.h), in the other direction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "io/gguf/blocks.h"
#include "model/model.h"
#include "text/pretrained/pretrained.h"

namespace heddle::pretrained {

struct ExportSource {
  const model::Model& model;
  const text::Tokenizer& tokenizer;
  std::vector<std::int32_t> ends;              // tokens that end a text
  std::vector<text::NamedTemplate> templates;  // for conversations
  // The model's own files, where it was written by others: their tokenizer is kept as it is, and
  // their family comes first. Empty otherwise.
  std::string path;
};

struct Exported {
  std::string family;
  std::int64_t tensors = 0;
};

// Throws Error naming the axis where no family has the model's choices together, and the tokenizer
// where the format has no place for it. Nothing is at `path` then, but for the directory.
Exported write_directory(const ExportSource& source, const std::string& path, DType type);
// Vectors are written in f32, and matrices whose rows are not whole blocks of the type in f16.
Exported write_gguf(const ExportSource& source, const std::string& path, io::BlockType type);

}  // namespace heddle::pretrained
