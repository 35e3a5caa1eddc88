// The page of `heddle inspect`: every head of a model on one input.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "generate/inspect.h"
#include "report/inspect/choice.h"

namespace heddle::report {

using HeadTable = std::vector<std::vector<model::HeadSummary>>;  // [layer][head]

// Statistics and pooled maps of all heads. `progress` is called with heads done and of all.
HeadTable summarise_heads(const generate::Inspection& inspection,
                          const std::function<void(std::int64_t, std::int64_t)>& progress = {});

// What `--json` and the page say of a head; what it has not is absent.
nlohmann::json stats_json(const model::HeadStats& stats);

struct InspectPage {
  std::string title, subtitle;
  std::vector<std::pair<std::string, std::string>> facts = {};
  // Bytes of the page that exact weights may take. What does not fit is shown pooled, and the page
  // says so.
  std::int64_t most_exact_bytes = std::int64_t{30} << 20;
};

struct MadePage {
  std::string html;
  std::int64_t exact_heads = 0;   // all chosen rows of which are in the page
  std::int64_t wanted_heads = 0;  // that were chosen
};

MadePage inspect_page(const InspectPage& page, const generate::Inspection& inspection,
                      const HeadTable& heads, const MapChoice& choice);

}  // namespace heddle::report
