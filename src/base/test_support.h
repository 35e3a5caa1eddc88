// Shared by tests of every room: messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle {

inline std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline void expect_says(const auto& body, std::initializer_list<std::string_view> parts) {
  const std::string message = message_of(body);
  for (const std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
}

}  // namespace heddle
