// Ctrl-C during long work: the first one asks for an orderly end.
#pragma once

#include <string>

namespace heddle::cli {

// From now on SIGINT, SIGTERM, SIGHUP and SIGPIPE (whoever read the output is gone) end the program
// at once with these words on standard error and status 128 + signal: for the time before there is
// anything to save.
void end_on_signals(const std::string& words);

// From now on they are noted. A second SIGINT or SIGTERM ends the program as usual, which does no
// harm to runs: what was saved is whole.
void catch_signals();

int caught_signal();  // 0: none yet

}  // namespace heddle::cli
