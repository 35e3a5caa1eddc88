// Conversion of text, labels and images into numbers, and back: everything that generate,
// translate, tag and classify need besides the model. A codec never changes once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/images/fit.h"
#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/config.h"
#include "text/named_template.h"
#include "text/tokenizer.h"

namespace heddle::data {

// Pixels x in [0, 1] are given to the model as (x - mean) / deviation, channel by channel.
struct ImageFacts {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<float> mean = {};
  std::vector<float> deviation = {};
  // How images of other sizes become such ones; without it they are refused.
  std::optional<ImageFit> fit = {};
};

// The tokens with which a model that translates begins and ends its texts, as its files say. What
// is absent follows from the target's tokenizer.
struct Writing {
  std::optional<std::int32_t> begin = {};  // the decoder reads it first, and it is not shown
  std::vector<std::int32_t> ends = {};     // each of these ends a text
  std::vector<std::int32_t> never = {};    // never written
  std::optional<std::int32_t> first = {};  // the first token of every text
  bool ends_at_limit = false;              // a text of the greatest length ends there by itself
};

// The parts of a codec.
struct CodecParts {
  model::Task task = model::Task::language;
  std::shared_ptr<const text::Tokenizer> source = {};  // none for images
  std::shared_ptr<const text::Tokenizer> target = {};  // translate, where it is another one
  std::vector<std::string> labels = {};                // of tag and classify
  std::optional<ImageFacts> image = {};
  std::int64_t length = 0;   // tokens of a text or of one side, without the end token
  bool word_shapes = false;  // tag: see text of unknown words in DataConfig
  // Whether "</s>" in a text is the end token or four characters: so for tokenizers that came from
  // a file, where texts may be marked up with them, and not for those that were trained here.
  text::SpecialsInText specials = text::SpecialsInText::plain;
  // Whether texts get the tokens around them that the tokenizer's files ask for (begin of text,
  // [CLS], [SEP]): so for models that others trained with them.
  bool framed = false;
  bool source_end = true;  // translate, not framed: whether the source ends with the end token
  Writing writing = {};    // translate
  // The next three are facts of a model that others trained. Rows of its tables: they may be more
  // than the tokenizer has tokens. 0: as many.
  std::int64_t rows = 0;
  std::vector<std::int32_t> ends = {};              // tokens that end a text
  std::vector<text::NamedTemplate> templates = {};  // how it wants conversations written
};

// The tokens of words: those of word i begin at first[i], where its tag is.
struct EncodedWords {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> first;
};

struct CutText {
  std::vector<std::int32_t> tokens;
  bool cut = false;
};

class Codec {
 public:
  // Throws Error where the task lacks something: a tokenizer without <s> and </s> for translate,
  // without <mask> for masked.
  explicit Codec(CodecParts parts);

  // A tokenizer on its own, as of a pretrained language model.
  static std::shared_ptr<const Codec> for_language(std::shared_ptr<const text::Tokenizer> tokenizer,
                                                   std::int64_t context);

  model::Task task() const { return parts_.task; }
  model::DataSizes sizes() const;
  std::int64_t max_tokens() const { return parts_.length; }  // of encode_source() without the end

  text::SpecialsInText specials() const { return parts_.specials; }
  const std::vector<std::int32_t>& ends() const { return parts_.ends; }
  const std::vector<text::NamedTemplate>& templates() const { return parts_.templates; }

  // The same for sequences that are longer; for shorter ones the codec as it is.
  std::shared_ptr<const Codec> lengthened(std::int64_t length) const;

  // Error for images. Where both sides share one, target() is source().
  const text::Tokenizer& source() const;
  const text::Tokenizer& target() const;
  const std::optional<ImageFacts>& image() const { return parts_.image; }

  const std::vector<std::string>& labels() const { return parts_.labels; }
  const std::string& label(std::int64_t id) const;  // Error when out of range
  std::optional<std::int32_t> label_id(std::string_view label) const;

  // Complete, with begin and at least one end: translate only, else Error.
  const Writing& writing() const;
  std::int32_t begin() const { return *writing().begin; }
  std::int32_t end() const { return writing().ends.front(); }
  bool has_source_end() const { return parts_.source_end; }
  std::int32_t source_end() const;  // of the source's tokenizer: translate only, else Error
  std::int32_t mask() const;        // masked only, else Error
  std::int32_t padding() const;     // what fills up sequences of the source: any valid token
  std::int32_t target_padding() const;

  // The model's input for a text: its tokens; for translate followed by the end token, unless the
  // parts say otherwise. Error for a text to translate that has no tokens.
  std::vector<std::int32_t> encode_source(std::string_view text) const;
  // The same, at most max_tokens() of them: the end of a longer text is cut off, and not the tokens
  // that the model wants around it.
  CutText encode_beginning(std::string_view text) const;
  std::vector<std::int32_t> encode_target(std::string_view text) const;  // without begin and end
  // The words of a sentence, for tag. A word must not be empty.
  EncodedWords encode_words(std::span<const std::string_view> words) const;

  std::string decode_source(std::span<const std::int32_t> ids) const;
  // The model's output as text, up to the first of the end tokens (translate), without special
  // tokens.
  std::string decode_target(std::span<const std::int32_t> ids) const;

  // Whether texts get a token before them that the tokenizer's files ask for: [CLS].
  bool begins_with_token() const;

  // u8 [C, H, W] (as io::read_image gives it) to f32 [channels, height, width], normalised. A grey
  // image is taken as a coloured one where the model wants colours; Error for any other difference.
  Tensor encode_image(const Tensor& image) const;

  // Sequences of different lengths as tokens and lengths of a batch, padded; targets are undefined.
  model::Batch batch_of(std::span<const std::vector<std::int32_t>> sequences) const;
  model::Batch batch_of_images(std::span<const Tensor> images) const;

  // In a run's directory: tokenizer.json, target_tokenizer.json where there is one, and codec.json
  // with the rest. The directory must exist.
  void save(const std::string& directory) const;
  static std::shared_ptr<const Codec> load(const std::string& directory);
  static bool exists(const std::string& directory);  // whether there is a codec.json

 private:
  std::vector<std::int32_t> around(std::vector<std::int32_t> tokens) const;  // as the files ask for
  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens) const;

  CodecParts parts_;
  std::unordered_map<std::string, std::int32_t> label_ids_;
};

}  // namespace heddle::data
