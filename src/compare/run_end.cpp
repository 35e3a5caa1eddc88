#include "compare/run_end.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "language/language.h"
#include "run/run_directory.h"

namespace heddle::compare {

namespace {

std::string final_path(const std::string& run) { return run + "/final.json"; }
// The curves of a report are made of the log, which has no checksum of its own as it grows.
std::string log_sum(const std::string& run) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  return io::crc32_of(io::read_file(run::RunPaths{run}.log(), kMostBytes));
}
std::string divergence_path(const std::string& run) { return run + "/diverged.json"; }

}  // namespace

double FinalEvaluation::mean() const {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  return std::inner_product(losses.begin(), losses.end(), weights.begin(), 0.0) / all;
}

bool has_final(const std::string& run_directory) {
  return io::file_exists(final_path(run_directory));
}

void write_final(const std::string& run_directory, const FinalEvaluation& evaluation) {
  io::write_sealed_json(final_path(run_directory), {{"losses", evaluation.losses},
                                                    {"targets", evaluation.weights},
                                                    {"log_crc32", log_sum(run_directory)}});
}

FinalEvaluation read_final(const std::string& run_directory) {
  try {
    const io::Json j =
        io::read_sealed_json(final_path(run_directory), {"losses", "targets", "log_crc32"});
    if (j.has("log_crc32") && j.at("log_crc32").string() != log_sum(run_directory))
      io::fail_io(run::RunPaths{run_directory}.log(),
                  "was edited or damaged after the run was done",
                  "the lines it was evaluated with");
    FinalEvaluation f{j.at("losses").numbers(), j.at("targets").numbers()};
    if (f.losses.size() != f.weights.size() || f.losses.empty())
      j.refuse("as many losses as targets");
    return f;
  } catch (const Error& e) {
    fail(e.code(), e.where(), e.problem(),
         e.expected() + "; without the file, the same heddle compare again evaluates anew",
         e.got());
  }
}

std::string Divergence::in_english() const {
  std::string all;
  for (const Sentence& s : reason) all += (all.empty() ? "" : ": ") + s.in_english();
  return all;
}

std::string Divergence::translated() const {
  std::string all;
  for (const Sentence& s : reason)
    all = all.empty() ? s.translated() : tr("{}: {}", all, s.translated());
  return all;
}

// The whole for those who read the file, and its sentences with their values apart for pages.
nlohmann::json to_json(const Divergence& divergence) {
  nlohmann::json j = {{"step", divergence.step}, {"reason", divergence.in_english()}};
  for (const Sentence& s : divergence.reason) {
    std::vector<std::string> parts = s.values;
    parts.insert(parts.begin(), s.english);
    j["sentences"].push_back(parts);
  }
  return j;
}

Divergence divergence_of(const io::Json& object) {
  Divergence d{object.at("step").integer(1), {}};
  if (!object.has("sentences")) {  // of an earlier version
    d.reason = {{object.at("reason").string(), {}}};
    return d;
  }
  const io::Json all = object.at("sentences");
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> parts = all.at(i).strings();
    if (parts.empty()) all.refuse("a text and its values");
    d.reason.push_back({parts[0], {parts.begin() + 1, parts.end()}});
  }
  return d;
}

void write_divergence(const std::string& run_directory, const Divergence& divergence) {
  io::write_sealed_json(divergence_path(run_directory), to_json(divergence));
}

std::optional<Divergence> read_divergence(const std::string& run_directory) {
  const std::string path = divergence_path(run_directory);
  if (!io::file_exists(path)) return std::nullopt;
  return divergence_of(io::read_sealed_json(path, {"step", "reason", "sentences"}));
}

}  // namespace heddle::compare
