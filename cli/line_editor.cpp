#include "line_editor.h"

#include <histedit.h>
#include <termios.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "heddle/error.h"

namespace heddle::cli {

struct LineEditor::Parts {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt = {};
  bool interrupted = false;
};

namespace {

// Characters are those of UTF-8, also where the locale is that of C.
void read_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

// libedit takes an interrupt for a mishap and reads on. So Ctrl-C is a key like others while a line
// is typed: what lives as long makes it one.
class InterruptIsAKey {
 public:
  InterruptIsAKey() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios now = before_;
    now.c_cc[VINTR] = _POSIX_VDISABLE;
    changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &now) == 0;
  }
  ~InterruptIsAKey() {
    if (changed_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  InterruptIsAKey(const InterruptIsAKey&) = delete;
  InterruptIsAKey& operator=(const InterruptIsAKey&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

}  // namespace

LineEditor::LineEditor() : parts_(std::make_unique<Parts>()) {
  read_utf8();
  parts_->editor = el_init("heddle", stdin, stdout, stderr);
  parts_->history = history_init();
  if (parts_->editor == nullptr || parts_->history == nullptr)
    fail(ErrorCode::failed, "the terminal", "cannot be edited in", "one that TERM names");
  EditLine* const editor = parts_->editor;
  HistEvent event;
  history(parts_->history, &event, H_SETSIZE, 1000);
  history(parts_->history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_CLIENTDATA, parts_.get());
  el_set(editor, EL_HIST, history, parts_->history);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(
      editor, EL_PROMPT, +[](EditLine* of) {
        void* data = nullptr;
        el_get(of, EL_CLIENTDATA, &data);
        return static_cast<Parts*>(data)->prompt.data();
      });
  // libedit takes one interrupt for a mishap and reads on. So Ctrl-C is a key while a line is
  // typed.
  el_set(editor, EL_SETTY, "-d", "intr=", nullptr);
  el_set(
      editor, EL_ADDFN, "heddle-interrupt", "drops the line", +[](EditLine* of, int) {
        void* data = nullptr;
        el_get(of, EL_CLIENTDATA, &data);
        static_cast<Parts*>(data)->interrupted = true;
        return static_cast<unsigned char>(CC_NEWLINE);
      });
  el_set(editor, EL_BIND, "^C", "heddle-interrupt", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (parts_->editor != nullptr) el_end(parts_->editor);
  if (parts_->history != nullptr) history_end(parts_->history);
}

TypedLine LineEditor::read(const std::string& prompt) {
  parts_->prompt = prompt;
  parts_->interrupted = false;
  const InterruptIsAKey while_typing;
  int bytes = 0;
  const char* const typed = el_gets(parts_->editor, &bytes);
  if (parts_->interrupted) {
    std::fputs("^C\n", stdout);
    return {.kind = TypedLine::Kind::interrupted};
  }
  if (typed == nullptr || bytes <= 0) return {.kind = TypedLine::Kind::end};
  TypedLine line{.kind = TypedLine::Kind::text, .text = typed};
  while (line.text.ends_with('\n') || line.text.ends_with('\r')) line.text.pop_back();
  HistEvent event;
  if (!line.text.empty()) history(parts_->history, &event, H_ENTER, line.text.c_str());
  return line;
}

}  // namespace heddle::cli
