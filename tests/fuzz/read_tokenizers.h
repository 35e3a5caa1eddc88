// Reads bytes as every file that a tokenizer may come in, and uses what comes out. Errors of kind
// io are how files are refused; whatever else is thrown, and every crash, is a fault.
#pragma once

#include <string>
#include <string_view>

namespace heddle::fuzz {

// By the name of the file: what ends in .json, .model or .txt is read as such. Throws Error where
// the file is refused.
void read_tokenizer(std::string_view name, const std::string& bytes);

}  // namespace heddle::fuzz
