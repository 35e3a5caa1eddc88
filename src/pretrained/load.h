// Models that others trained: a directory as they are published in (config.json, safetensors, a
// tokenizer), or a .gguf file.
#pragma once

#include <memory>
#include <string>

#include "data/codec/codec.h"
#include "model/model.h"
#include "pretrained/family.h"
#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// Whether a path looks like one of the two: a file whose name ends in .gguf, or a directory with a
// config.json.
bool is_pretrained(const std::string& path);

// A model opened, without its weights in memory: what `heddle info MODEL` shows.
struct Opened {
  std::string path;
  const Family* family = nullptr;
  bool gguf = false;
  model::ModelConfig config;
  std::vector<std::string> labels = {};  // of a model that gives labels
  std::unique_ptr<WeightFiles> files;
};

// Throws Error naming the file and the key that is missing, bad or not understood.
Opened open(const std::string& path);

// The model with the weights of the files; one that lacks some of them, or has others, is an Error.
std::unique_ptr<model::Model> build(const Opened& opened, const model::BuildOptions& options);

// The tokenizer of the files, with the tokens that end a text and the templates for conversations.
std::shared_ptr<const data::Codec> codec_of(const Opened& opened);

struct Loaded {
  model::ModelConfig config;
  std::unique_ptr<model::Model> model;
  std::shared_ptr<const data::Codec> codec;
};

Loaded load(const Opened& opened, const model::BuildOptions& options = {});
Loaded load(const std::string& path, const model::BuildOptions& options = {});

}  // namespace heddle::pretrained
