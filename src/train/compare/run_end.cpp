#include "train/compare/run_end.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "heddle/error.h"
#include "io/file.h"
#include "io/seal.h"

namespace heddle::train {

namespace {

std::string final_path(const std::string& run) { return run + "/final.json"; }
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
  io::write_sealed_json(final_path(run_directory),
                        {{"losses", evaluation.losses}, {"targets", evaluation.weights}});
}

FinalEvaluation read_final(const std::string& run_directory) {
  try {
    const io::Json j = io::read_sealed_json(final_path(run_directory), {"losses", "targets"});
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

void write_divergence(const std::string& run_directory, const Divergence& divergence) {
  io::write_sealed_json(divergence_path(run_directory),
                        {{"step", divergence.step}, {"reason", divergence.reason}});
}

std::optional<Divergence> read_divergence(const std::string& run_directory) {
  const std::string path = divergence_path(run_directory);
  if (!io::file_exists(path)) return std::nullopt;
  const io::Json j = io::read_sealed_json(path, {"step", "reason"});
  return Divergence{j.at("step").integer(1), j.at("reason").string()};
}

}  // namespace heddle::train
