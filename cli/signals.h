// Ctrl-C during long work: the first one asks for an orderly end.
#pragma once

namespace heddle::cli {

// From now on SIGINT and SIGTERM are noted. The second one ends the program as usual, which does no
// harm to runs: what was saved is whole.
void catch_signals();

int caught_signal();  // 0: none yet

}  // namespace heddle::cli
