// A family of pretrained models is a table: which choice of the grammar each key of its config.json
// makes, and what its tensors are called.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heddle/tensor.h"
#include "io/toml/toml.h"
#include "model/config.h"

namespace heddle::pretrained {

// A part of a tensor of the file, as the model has it.
using Take = Tensor (*)(const Tensor& source, const model::ModelConfig& config);

// In both names a # is a number (of a layer; a second one of an expert), and a * at the end is
// "weight" or "bias".
struct TensorName {
  std::string_view ours;        // "layers.#.attention.q.*"
  std::string_view theirs;      // "model.layers.#.self_attn.q_proj.*"
  Take take = nullptr;          // null: as it is
  std::string_view below = {};  // another of theirs, whose rows follow: up behind gate
};

struct Family {
  std::string_view name;  // as config.json has it under model_type, or GGUF as its architecture
  // The configuration, sizes included. Asks for every key that it understands, and says which have
  // no effect on results; others are refused afterwards.
  model::ModelConfig (*read)(const io::TomlTable& settings);
  std::span<const TensorName> names;
  std::span<const TensorName> shared_names = {};  // of relatives too; its own come first
  // Files that were saved without the head over tokens leave this out of their names.
  std::string_view prefix = {};
  // Tensors of files that hold nothing learned, or belong to a part that is not built: parts of
  // their names.
  std::span<const std::string_view> unused = {};
};

// Throws Error listing the families there are. `where` is the file that asks.
const Family& family(std::string_view name, const std::string& where);
const Family& gguf_family(std::string_view architecture, const std::string& where);

// The names of all, for people.
std::string family_names();
std::string gguf_family_names();

}  // namespace heddle::pretrained
