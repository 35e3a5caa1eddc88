#include "signals.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <initializer_list>

namespace heddle::cli {

namespace {

volatile std::sig_atomic_t caught = 0;
// Filled before the handler is there; the handler only reads.
std::string& last_words() {
  static std::string words;
  return words;
}
const char* words_to_write = "";
std::size_t bytes_to_write = 0;

void handle(void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
  // A terminal that closes tells its programs twice, by the shell and by itself, and a reader that
  // is gone at every line that is written: the second is no impatience. Who asked for not being
  // told (nohup) is not.
  action.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGHUP, SIGPIPE}) {
    struct sigaction before{};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

// The handler may call very little: write() and _exit() are allowed.
void end_on_signals(const std::string& words) {
  last_words() = words;
  words_to_write = last_words().data();
  bytes_to_write = words.size();
  handle(
      [](int signal) {
        const auto written = write(STDERR_FILENO, words_to_write, bytes_to_write);
        (void)written;  // there is nobody left to tell
        _exit(128 + signal);
      },
      SA_RESTART);
}

void catch_signals() {
  handle([](int signal) { caught = signal; }, static_cast<int>(SA_RESETHAND | SA_RESTART));
}

int caught_signal() { return caught; }

}  // namespace heddle::cli
