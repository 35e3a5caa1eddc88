// How the times of a comparison were taken: in turns on one machine, where the ratio of two
// variants means something, or run by run on several ranks, where it is as much that of the ranks.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/json/json.h"

namespace heddle::compare {

struct Timing {
  std::int64_t ranks = 1;               // at most; 1: all runs in turns
  std::vector<std::string> hosts = {};  // machines of these ranks, sorted

  bool in_turns() const { return ranks == 1; }
  bool operator==(const Timing&) const = default;
};

// Notes in the directory of a run (ranks.json) that one of so many ranks trains it on this host.
void note_rank(const std::string& run_directory, std::int64_t ranks, const std::string& host);
// Of all these runs together.
Timing timing_of(const std::vector<std::string>& run_directories);

// {"taken":"in-turns"}, or {"taken":"on-ranks","ranks","hosts"}
nlohmann::json to_json(const Timing& timing);
Timing timing_of_json(const io::Json& object);

}  // namespace heddle::compare
