// Lines that people type in a terminal, with editing and the lines before (libedit).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heddle::cli {

struct TypedLine {
  enum class Kind : std::uint8_t {
    text,         // without its end
    interrupted,  // Ctrl-C: what was typed is gone
    end,          // Ctrl-D, or the terminal is gone
  };
  Kind kind = Kind::end;
  std::string text = {};
};

class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  TypedLine read(const std::string& prompt);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle::cli
