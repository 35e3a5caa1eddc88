#include "signals.h"

#include <csignal>
#include <initializer_list>

namespace heddle::cli {

namespace {
volatile std::sig_atomic_t caught = 0;
}

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int signal) { caught = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int caught_signal() { return caught; }

}  // namespace heddle::cli
