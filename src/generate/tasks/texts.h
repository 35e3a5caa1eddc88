// Many texts as the tokens that a model reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "heddle/error.h"
#include "model/model.h"

namespace heddle::generate {

struct EncodedTexts {
  std::vector<std::vector<std::int32_t>> tokens;  // none for a text of nothing but white space

  std::vector<std::size_t> lengths() const;
};

// Throws Error naming the line (from 1) of a text that has no tokens in the model's vocabulary, or
// more tokens than the model has positions.
EncodedTexts encode_texts(const model::Model& model, const data::Codec& codec,
                          std::span<const std::string_view> texts, std::string_view where);

bool is_blank(std::string_view text);  // nothing but ASCII white space

// Refuses `tokens` of line `line` (from 0) where the model has fewer positions.
void check_length(const model::Model& model, std::size_t tokens, std::size_t line,
                  std::string_view where);

// Calls body; its errors are rethrown with the line (from 0) of the input.
template <class Body>
auto at_line(std::string_view where, std::size_t line, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    fail(e.code(), std::string(where) + ": line " + std::to_string(line + 1), e.problem(),
         e.expected(), e.got());
  }
}

}  // namespace heddle::generate
