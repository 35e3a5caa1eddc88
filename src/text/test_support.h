// Shared by the tests of tokenizers.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/error.h"
#include "io/test_support.h"
#include "text/train.h"
#include "text/unicode.h"

namespace heddle::text {

inline std::unique_ptr<Tokenizer> trained(std::string_view spec, std::string_view text,
                                          const SpecialTokens& specials = {}) {
  return train_tokenizer(TokenizerSpec::parse(spec, "test"), {&text, 1}, specials);
}

// `body` throws an Error whose message has all of the parts.
inline void expect_refusal(const auto& body, std::initializer_list<std::string_view> parts) {
  std::string message = "nothing was thrown";
  try {
    body();
  } catch (const Error& e) {
    message = e.what();
  }
  for (const std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
}

// Any code point; half of them ASCII.
inline rc::Gen<std::int32_t> code_points() {
  const auto any = rc::gen::map(
      rc::gen::inRange<std::uint32_t>(0, 0x110000 - 0x800),
      [](std::uint32_t c) { return static_cast<std::int32_t>(c < 0xD800 ? c : c + 0x800); });
  const auto ascii = rc::gen::map(rc::gen::inRange<std::uint32_t>(0, 128),
                                  [](std::uint32_t c) { return static_cast<std::int32_t>(c); });
  return rc::gen::oneOf(ascii, any);
}

// Text of such code points.
inline rc::Gen<std::string> unicode_texts() {
  return rc::gen::map(rc::gen::container<std::vector<std::int32_t>>(code_points()),
                      [](const std::vector<std::int32_t>& characters) {
                        std::string text;
                        for (const std::int32_t c : characters) text += to_utf8(c);
                        return text;
                      });
}

}  // namespace heddle::text
