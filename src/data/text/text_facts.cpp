// What a recipe says of a text, whichever way it is read.
#include <utility>

#include "data/text/load_text.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

using TokenizerKind = text::TokenizerSpec::Kind;

TokenizerKind kind_of_tokenizer(const LoadRequest& request) {
  return tokenizer_spec(request.config, "tokenizer", request.config.tokenizer).kind;
}

std::int64_t context_of(const LoadRequest& request) {
  if (!request.options.codec) return request.config.context;
  const std::int64_t made_for = request.options.codec->max_tokens();
  if (request.config.context > made_for)
    fail(ErrorCode::invalid_argument, "data.context", "longer than the model's",
         "at most " + std::to_string(made_for), std::to_string(request.config.context));
  return request.config.context > 0 ? request.config.context : made_for;
}

}  // namespace

bool takes_any_byte(const LoadRequest& request) {
  if (request.options.codec) return request.options.codec->source().kind() == "byte";
  return kind_of_tokenizer(request) == TokenizerKind::byte;
}

bool learns_alphabet(const LoadRequest& request) {
  return kind_of_tokenizer(request) == TokenizerKind::character;
}

text::SpecialTokens text_specials(const LoadRequest& request) {
  text::SpecialTokens specials;
  specials.mask = request.task == model::Task::masked;
  specials.unknown = kind_of_tokenizer(request) == TokenizerKind::word ||
                     (learns_alphabet(request) && specials.mask);
  return specials;
}

std::shared_ptr<const Codec> text_codec(const LoadRequest& request, const MadeTokenizer& made) {
  CodecParts parts;
  parts.task = request.task;
  parts.length = request.config.context;
  parts.source = made.tokenizer;
  parts.specials = made.specials;
  return std::make_shared<Codec>(std::move(parts));
}

TextOptions text_options(const LoadRequest& request) {
  TextOptions options;
  options.task = request.task;
  options.context = context_of(request);
  options.prompts = request.config.prompts;
  options.mixture = request.config.mixture;
  options.mask_share = request.config.mask_share.value_or(kDefaultMaskShare);
  return options;
}

void check_length(const LoadRequest& request, const TextOptions& options, Split split,
                  const std::string& path, std::int64_t tokens) {
  const std::int64_t fewest = TextDataset::fewest_tokens(options, split);
  if (tokens >= fewest) return;
  const bool training = split == Split::training;
  fail(ErrorCode::io, path,
       training ? "text is shorter than a window"
                : (from_training_files(request, split) ? "the held-out end of the text is too short"
                                                       : "text is too short"),
       "at least " + std::to_string(fewest) + " tokens" + (training ? " (context)" : ""),
       std::to_string(tokens));
}

SplitFacts facts_of(const std::vector<EncodedText>& texts) {
  SplitFacts facts;
  for (const EncodedText& text : texts) {
    facts.tokens += text.size();
    facts.unknown += text.unknown;
    facts.documents += text.document_count();
  }
  return facts;
}

}  // namespace heddle::data
