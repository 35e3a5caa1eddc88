// A family of pretrained models is a table: which choice of the grammar each key of its config.json
// makes, and what its tensors are called.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/tensor.h"
#include "io/toml/toml.h"
#include "model/config.h"
#include "pretrained/settings/settings.h"

namespace heddle::pretrained {

// A part of a tensor of the file, as the model has it.
using Take = Tensor (*)(const Tensor& source, const model::ModelConfig& config);

// How two tensors of the file become one of the model.
enum class Join : std::uint8_t {
  below,               // rows of the second follow: up behind gate
  beside,              // columns of the second follow
  plus,                // their sum
  first_row,           // the second's first row is added to all rows
  first_row_if_there,  // the same where the file has the second
};

// In both names a # is a number (of a layer; a second one of an expert), and a * at the end is
// "weight" or "bias". Theirs may lack the second number: then one tensor has all experts.
struct TensorName {
  std::string_view ours;         // "layers.#.attention.q.*"
  std::string_view theirs;       // "model.layers.#.self_attn.q_proj.*"
  Take take = nullptr;           // null: as it is
  std::string_view second = {};  // another of theirs, which is joined to it
  // Of names that mean the same: which configurations are written with this one. Files that are
  // read say it themselves, by the names that they have.
  bool (*when)(const model::ModelConfig& config) = nullptr;
  Join join = Join::below;
};

class WeightFiles;

struct Family {
  std::string_view name;  // as config.json has it under model_type, or GGUF as its architecture
  // The configuration, sizes included. Asks for every key that it understands, and says which have
  // no effect on results; others are refused afterwards.
  model::ModelConfig (*read)(const io::TomlTable& settings);
  std::span<const TensorName> names;
  std::span<const TensorName> shared_names = {};  // of relatives too; its own come first
  // Files that were saved without a head leave this out of their names; others have it.
  std::string_view prefix = {};
  // Tensors of files that hold nothing learned, or belong to a part that is not built: parts of
  // their names.
  std::span<const std::string_view> unused = {};
  // Choices that the weights make and the settings leave open, such as a head of its own. Of GGUF
  // files instead of what gguf_tensors.h sees in those of decoders.
  void (*look_at)(const WeightFiles& files, model::ModelConfig& config) = nullptr;
  // The way back: the keys that make `read` give this configuration, or one that is as near to it
  // as the family has. Whoever writes reads them again and compares (export.h). Null: files of this
  // family are not written.
  Settings (*write)(const model::ModelConfig& config) = nullptr;
  // GGUF: whether a tensor of the file may scale the angles of rotary positions one by one.
  bool factors = false;
  // Whether images may have another size than config.json says: preprocessor_config.json decides.
  bool any_image_size = false;
  std::string_view architecture = {};  // the name that config.json gives it beside model_type
};

// Throws Error listing the families there are. `where` is the file that asks.
const Family& family(std::string_view name, const std::string& where);
const Family& gguf_family(std::string_view architecture, const std::string& where);

// The names of all, for people.
std::string family_names();
std::string gguf_family_names();

// All of them.
std::span<const Family> families();
std::span<const Family> gguf_families();

}  // namespace heddle::pretrained
