#include "compare/timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/files/checksums/seal.h"
#include "io/files/file.h"

namespace heddle::compare {

namespace {

constexpr const char* kInTurns = "in-turns";
constexpr const char* kOnRanks = "on-ranks";

std::string ranks_path(const std::string& run) { return run + "/ranks.json"; }

void add(Timing& all, const Timing& more) {
  all.ranks = std::max(all.ranks, more.ranks);
  all.hosts.insert(all.hosts.end(), more.hosts.begin(), more.hosts.end());
  std::ranges::sort(all.hosts);
  const auto [first, last] = std::ranges::unique(all.hosts);
  all.hosts.erase(first, last);
}

Timing timing_of_run(const std::string& run) {
  if (!io::file_exists(ranks_path(run))) return {};
  const io::Json j = io::read_sealed_json(ranks_path(run), {"ranks", "hosts"});
  return {j.at("ranks").integer(1), j.at("hosts").strings()};
}

}  // namespace

void note_rank(const std::string& run_directory, std::int64_t ranks, const std::string& host) {
  Timing all = timing_of_run(run_directory);
  const Timing before = all;
  add(all, {ranks, {host}});
  if (all == before) return;
  io::make_directories(run_directory);
  io::write_sealed_json(ranks_path(run_directory), {{"ranks", all.ranks}, {"hosts", all.hosts}});
}

Timing timing_of(const std::vector<std::string>& run_directories) {
  Timing all;
  for (const std::string& run : run_directories) add(all, timing_of_run(run));
  return all;
}

nlohmann::json to_json(const Timing& timing) {
  if (timing.in_turns()) return {{"taken", kInTurns}};
  return {{"taken", kOnRanks}, {"ranks", timing.ranks}, {"hosts", timing.hosts}};
}

Timing timing_of_json(const io::Json& object) {
  if (object.at("taken").string() == kInTurns) return {};
  if (object.at("taken").string() != kOnRanks) object.at("taken").refuse("in-turns or on-ranks");
  return {object.at("ranks").integer(2), object.at("hosts").strings()};
}

}  // namespace heddle::compare
