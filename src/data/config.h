// A recipe's [data] table: files, tokenizers, lengths, augmentation.
//
// Paths are relative to the working directory; a file that is not there is looked for in the
// recipe's directory. Every text file may be plain or gzip, and must be UTF-8 unless the tokenizer
// works on bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace heddle::io {
class TomlTable;
}

namespace heddle::data {

enum class Split : std::uint8_t { training, validation, test };
inline constexpr int kSplits = 3;

enum class Documents : std::uint8_t { none, line, blank_line, file };
std::string_view to_string(Documents documents);

// The files of one split. A recipe names those of validation and test with a prefix: `pairs`,
// `validation_pairs`, `test_pairs`; only `text` has the shorter `validation` and `test`.
struct Files {
  // language, masked: joined in this order. A name may be a pattern, "part-*.txt".
  std::vector<std::string> text = {};
  std::string chat = {};    // language: a conversation a line, as JSON
  std::string source = {};  // translate: line n of `source` is line n of `target`
  std::string target = {};
  std::string pairs = {};         // translate: source<TAB>target
  std::string tags = {};          // tag: word<TAB>tag, a blank line between sentences
  std::string labelled = {};      // classify: label<TAB>text
  std::string images = {};        // classify: IDX of bytes, with `labels`
  std::string labels = {};        // classify: IDX of bytes
  std::string image_folder = {};  // classify: a folder of PNG or JPEG files per class

  bool given() const { return !first().empty(); }
  std::string first() const;  // a file that is named; empty when there is none
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
  // translate: whether the tokens of a source end with the end token. Absent: true.
  std::optional<bool> source_end = {};
  std::optional<std::int64_t> min_count = {};  // word: rarer words are unknown; absent: 2
  // tag with word: a rare word is known by its shape and ending ("Xx…ing"). Absent: true.
  std::optional<bool> word_shapes = {};

  std::int64_t context = 0;  // language, masked: tokens of a window
  // language, masked: where a text falls into documents that do not see each other. Each ends with
  // its last line's end; the first token of one is not predicted, since nothing tells of it.
  Documents documents = Documents::none;
  // language, masked: texts are JSON lines, and this key of each has a document.
  std::string field = {};
  // language, masked: the folder of token files, which texts are tokenised into a piece at a time.
  // Empty: tokens are kept in memory.
  std::string token_folder = {};
  // language, masked: the share of training windows that each name of training.text has, in
  // proportion. Empty: the texts are one.
  std::vector<double> mixture = {};
  // language: windows begin with a prompt of random length (half of the window in evaluations),
  // which is not predicted. Not a key of its own: it follows from model.attention.prefix.
  bool prompts = false;
  // translate, tag, labelled: tokens of a sequence (of pieces, where words have several), without
  // the end token. Longer training examples are dropped and counted, longer ones for evaluation are
  // an Error; texts with a label are cut, and counted. Absent: 512.
  std::optional<std::int64_t> max_length = {};
  // chat: whether conversations for training that are longer than max_length are left out, and
  // counted. Otherwise such a one is an Error. Absent: false. Without max_length conversations may
  // be as long as the model's context.
  std::optional<bool> skip_long = {};

  std::optional<double> mask_share = {};      // masked: tokens to predict; absent: 0.15
  bool flip = false;                          // images: half of them mirrored in training
  std::int64_t shift = 0;                     // images: moved by up to this many pixels in training
  std::vector<std::string> label_names = {};  // images with IDX labels: names of 0, 1, …

  std::string directory = {};  // the recipe's: where relative paths are looked for second

  const Files& files(Split split) const;
};

bool has_chat(const DataConfig& config);  // whether its files are conversations

// Asks the table for every key there is: the document's finish() refuses others. A value that
// cannot be is an Error. `directory` is the recipe's.
DataConfig parse_data(const io::TomlTable& table, const std::string& directory = {});

// Throws Error naming the key: one that the task needs and lacks, one that it does not use, numbers
// out of range. Does not look at files.
struct DataNeeds {
  bool codec = true;     // whether tokenizers will be made, so that the recipe must name them
  bool training = true;  // whether training files will be read
};
void validate(const DataConfig& config, model::Kind kind, model::Task task,
              const DataNeeds& needs = {});

// The files that the names of a text lead to: those of a pattern in the order of their names'
// bytes.
std::vector<std::string> resolve_texts(const DataConfig& config,
                                       const std::vector<std::string>& names);

// `path` if it is absolute or exists, otherwise the one in config.directory. An Error names both
// when neither exists.
std::string resolve_path(const DataConfig& config, const std::string& path);

}  // namespace heddle::data
