// Templates rendered in one line, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "heddle/error.h"
#include "text/template/chat_template.h"
#include "text/template/values/read_json.h"

namespace heddle::text::chat {

// Saturday, 4 July 2026, 13:05:09.
inline std::tm fixed_time() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mon = 6;
  t.tm_mday = 4;
  t.tm_hour = 13;
  t.tm_min = 5;
  t.tm_sec = 9;
  t.tm_wday = 6;
  t.tm_yday = 184;
  return t;
}

inline Rendered rendered(const std::string& source, const std::string& context = "{}",
                         const Limits& limits = {}) {
  return ChatTemplate::parse(source, "test", limits)
      .render(read_json(context, "context", true), fixed_time);
}

inline std::string render(const std::string& source, const std::string& context = "{}") {
  return rendered(source, context).text();
}

// The message of the Error, or nothing when there is none.
inline std::string refusal(const std::string& source, const std::string& context = "{}",
                           const Limits& limits = {}) {
  try {
    rendered(source, context, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace heddle::text::chat
