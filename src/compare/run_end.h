// Files that a run of a comparison leaves besides those of any run, once it has ended: the losses
// of its last evaluation (final.json), or that it diverged (diverged.json).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/json/json.h"
#include "language/sentence.h"

namespace heddle::compare {

struct FinalEvaluation {
  std::vector<double> losses;   // means of batches
  std::vector<double> weights;  // targets that counted
  double mean() const;
};

bool has_final(const std::string& run_directory);
void write_final(const std::string& run_directory, const FinalEvaluation& evaluation);
FinalEvaluation read_final(const std::string& run_directory);

// The step that was not finite, which would come again: such a run is over.
struct Divergence {
  std::int64_t step = 0;
  // "loss nan", "output 0 of op linear ... is inf at [0, 1]"
  std::vector<Sentence> reason;

  std::string in_english() const;
  std::string translated() const;
};

// The members of a JSON object that tell it, and back.
nlohmann::json to_json(const Divergence& divergence);
Divergence divergence_of(const io::Json& object);

void write_divergence(const std::string& run_directory, const Divergence& divergence);
std::optional<Divergence> read_divergence(const std::string& run_directory);

}  // namespace heddle::compare
