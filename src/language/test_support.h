// For tests of what people read.
#pragma once

#include "language/language.h"

namespace heddle {

// Chinese while it lives; then English again, whatever a test does.
struct InChinese {
  InChinese() { set_language(Language::chinese); }
  ~InChinese() { set_language(Language::english); }
  InChinese(const InChinese&) = delete;
  InChinese& operator=(const InChinese&) = delete;
};

}  // namespace heddle
