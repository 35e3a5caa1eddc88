// The page of `heddle inspect`: every head of a model on one input, or of two beside each other.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "generate/inspect.h"
#include "report/inspect/choice.h"

namespace heddle::report {

using HeadTable = std::vector<std::vector<model::HeadSummary>>;  // [layer][head]

// Statistics and pooled maps of all heads. `progress` is called with heads done and of all.
HeadTable summarise_heads(const Inspection& inspection,
                          const std::function<void(std::int64_t, std::int64_t)>& progress = {});

// The statistics of a head, for `--json` and the page; those it lacks are absent.
nlohmann::json stats_json(const model::HeadStats& stats);

struct InspectPage {
  std::string title, subtitle;
  std::vector<std::pair<std::string, std::string>> facts = {};
  // Bytes of the page that exact weights may take. What does not fit is shown pooled, and the page
  // says so.
  std::int64_t most_exact_bytes = std::int64_t{30} << 20;
};

// A model on an input. What it refers to must live as long as it.
struct InspectSide {
  std::string name;  // of two: what tells them apart
  const Inspection& inspection;
  const HeadTable& heads;
  const MapChoice& choice;
  bool asked = false;  // whether somebody chose layers or heads: the page opens the first of them
};

struct MadePage {
  std::string html;
  std::int64_t exact_heads = 0;   // all chosen rows of which are in the page
  std::int64_t wanted_heads = 0;  // that were chosen
};

// One side or two; Error for others, and for a model of images beside one of texts. Two sides have
// the same scale of colours, and the difference of their maps where the tokens are the same.
MadePage inspect_page(const InspectPage& page, std::span<const InspectSide> sides);

}  // namespace heddle::report
