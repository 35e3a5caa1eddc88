// Shared by the two ways in which texts are read: whole, and as streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loading.h"
#include "data/text/text_data.h"

namespace heddle::data {

// Texts that are read a piece at a time: into token files (data.token_folder), JSON lines
// (data.field).
std::unique_ptr<Dataset> open_streamed(const LoadRequest& request);

bool takes_any_byte(const LoadRequest& request);  // instead of UTF-8 alone

// Characters are an alphabet, not something learned: all of the data's are in it, whatever split
// they are in. Words and pieces are learned, from the training text alone.
bool learns_alphabet(const LoadRequest& request);
text::SpecialTokens text_specials(const LoadRequest& request);
std::shared_ptr<const Codec> text_codec(const LoadRequest& request, const MadeTokenizer& made);

TextOptions text_options(const LoadRequest& request);
void check_length(const LoadRequest& request, const TextOptions& options, Split split,
                  const std::string& path, std::int64_t tokens);
SplitFacts facts_of(const std::vector<EncodedText>& texts);

}  // namespace heddle::data
