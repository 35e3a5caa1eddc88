// Shared by the loaders of the different kinds of data: the request, tokenizers, the split into
// training and validation, and the facts reported about it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/read.h"
#include "text/train.h"

namespace heddle::data {

inline constexpr std::int64_t kDefaultMaxLength = 512;
inline constexpr double kDefaultMaskShare = 0.15;
inline constexpr double kDefaultTextShare = 0.1;

struct LoadRequest {
  const DataConfig& config;
  model::Kind kind;
  model::Task task;
  const OpenOptions& options;

  // Of sequences: the existing codec's, since its model was made for it, unless the recipe says
  // less.
  std::int64_t max_length() const;
  bool wants(Split split) const;  // whether the split is requested, from whichever files
  // The share of the training files that becomes validation data; 0 without.
  double held_out_share() const;
  bool reads_training() const;  // for itself, for the held-out part or for the codec
};

// One per kind of data.
std::unique_ptr<Dataset> open_text(const LoadRequest& request);
std::unique_ptr<Dataset> open_chat(const LoadRequest& request);
std::unique_ptr<Dataset> open_pairs(const LoadRequest& request);
std::unique_ptr<Dataset> open_tags(const LoadRequest& request);
std::unique_ptr<Dataset> open_labelled(const LoadRequest& request);
std::unique_ptr<Dataset> open_images(const LoadRequest& request);

struct TokenizerRequest {
  std::string_view key;  // of the recipe: "tokenizer"
  std::string spec;
  std::span<const std::string_view> texts;
  text::SpecialTokens specials;
  const text::TextPieces* pieces = nullptr;  // instead of the texts
};
struct MadeTokenizer {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  text::SpecialsInText specials;  // as in CodecParts
};
// Trained on the texts, or read from the file that the spec names.
MadeTokenizer make_tokenizer(const LoadRequest& request, const TokenizerRequest& what);
text::TokenizerSpec tokenizer_spec(const DataConfig& config, std::string_view key,
                                   const std::string& spec);

// Which of `count` examples are held out: in increasing order, the same for every seed. At least
// one on either side, so count must be 2 or more.
std::vector<bool> held_out(std::int64_t count, double share, const std::string& where);

// Whether examples of a split came from the training files, where bad ones may be dropped.
bool from_training_files(const LoadRequest& request, Split split);

// Facts reported about one split.
struct SplitFacts {
  std::string unit = {};  // conversations, pairs, texts, sentences or images; empty for a text
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  std::int64_t words = 0;          // with a tag; 0: not told apart
  std::int64_t documents = 0;      // of a text; 0: not told apart
  std::int64_t target_tokens = 0;  // translate
  std::int64_t answer_tokens = 0;  // chat: those that count
  std::int64_t unknown = 0;        // of both
  std::int64_t too_long = 0;       // dropped
  std::int64_t blank = 0;          // dropped
  std::int64_t cut = 0;            // texts that were longer
};
// Throws Error when nothing is left of a split.
void check_not_empty(const LoadRequest& request, Split split, const SplitFacts& facts);
std::string describe(Split split, const SplitFacts& facts, std::int64_t max_length);
std::string describe_tokenizers(const Codec& codec);  // and labels
std::string describe_labels(const Codec& codec);
std::string describe_token_folder(const std::string& folder, std::int64_t bytes);
std::string grouped(std::int64_t number);  // "1,115,394"
std::int64_t count_of(std::span<const std::int32_t> ids, std::optional<std::int32_t> id);

}  // namespace heddle::data
