// A streamed text to tokens, on all threads, in memory that does not grow with it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "data/codec/codec.h"
#include "data/text/text_shares.h"
#include "text/train.h"

namespace heddle::data {

// Takes the tokens, in the order of the text; `begins`: the first of them begins a document.
using TokenSink = std::function<void(std::span<const std::int32_t> tokens, bool begins)>;
using BytesDone = std::function<void(std::uint64_t bytes)>;  // of the text, so far

// Returns how many of the tokens are unknown words. Errors name file and line.
std::int64_t encode_stream(const Codec& codec, TextShares& shares, const TokenSink& sink,
                           const BytesDone& progress = {});

// The shares of a text as a tokenizer is trained on them.
text::TextPieces pieces_of(const StreamedFiles& files, const ShareOptions& options,
                           const BytesDone& progress = {});

}  // namespace heddle::data
