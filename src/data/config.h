// What a recipe's [data] table says: files, tokenizers, lengths, augmentation.
//
// Paths are taken as they are from the working directory; one that is not there is looked for in
// the recipe's directory. Every text file may be plain or gzip, and must be UTF-8 unless the
// tokenizer works on bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace heddle::io {
class TomlTable;
}

namespace heddle::data {

enum class Split : std::uint8_t { training, validation, test };
inline constexpr int kSplits = 3;

// The files of one split. A recipe names those of validation and test with a prefix: `pairs`,
// `validation_pairs`, `test_pairs`; only `text` has the shorter `validation` and `test`.
struct Files {
  std::vector<std::string> text = {};  // language, masked: joined in this order
  std::string source = {};             // translate: line n of `source` is line n of `target`
  std::string target = {};
  std::string pairs = {};         // translate: source<TAB>target
  std::string tags = {};          // tag: word<TAB>tag, a blank line between sentences
  std::string labelled = {};      // classify: label<TAB>text
  std::string images = {};        // classify: IDX of bytes, with `labels`
  std::string labels = {};        // classify: IDX of bytes
  std::string image_folder = {};  // classify: a folder of PNG or JPEG files per class

  bool given() const;
};

struct DataConfig {
  Files training = {};
  Files validation = {};
  Files test = {};

  // Part of the training data that is held out where no validation files are given. Of a text it is
  // the end; of examples a choice that is the same for every seed. Absent: 0.1 of a text, no
  // examples.
  std::optional<double> validation_share = {};

  std::string tokenizer = {};         // char | byte | word | bpe:N | a tokenizer.json
  std::string target_tokenizer = {};  // translate: of the target; absent: one for both sides
  std::int64_t min_count = 2;         // word: rarer words are unknown
  // tag with word: an unknown word is known by its shape and ending ("Xxx…ing") instead.
  bool word_shapes = true;

  std::int64_t context = 0;  // language, masked: tokens of a window
  // translate, tag, labelled: tokens of a sequence (of pieces, where words have several), without
  // the end token. Longer training examples are dropped and counted, longer ones for evaluation are
  // an Error; texts with a label are cut, and counted.
  std::int64_t max_length = 256;

  double mask_share = 0.15;                   // masked: tokens to predict
  bool flip = false;                          // images: half of them mirrored in training
  std::int64_t shift = 0;                     // images: moved by up to so many pixels in training
  std::vector<std::string> label_names = {};  // images with IDX labels: names of 0, 1, …

  std::string directory = {};  // the recipe's: where relative paths are looked for second

  const Files& files(Split split) const;
};

// Takes the keys out of the table; an unknown one or a value that cannot be is an Error.
DataConfig parse_data(io::TomlTable& table);

// Throws Error naming the key: what the task needs and has not, what it has no use for, numbers out
// of range. Does not look at files.
void validate(const DataConfig& config, model::Kind kind, model::Task task);

// `path` if it is absolute or exists, otherwise the one in config.directory. An Error names both
// when neither exists.
std::string resolve_path(const DataConfig& config, const std::string& path);

}  // namespace heddle::data
