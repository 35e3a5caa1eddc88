// Experiments and their outcomes for people and for programs.
#pragma once

#include <span>
#include <string>

#include "lab/experiment.h"
#include "lab/run.h"

namespace heddle::lab {

// On a terminal of so many columns, 60 or more. `colour`: with ANSI styles.
std::string list_text(std::span<const Experiment* const> list, std::size_t columns = 96);
std::string outcome_text(const Outcome& outcome, bool colour, std::size_t columns = 96);
std::string summary_text(std::span<const Outcome> outcomes);

// {"experiments": [...]}, as DESIGN and docs/lab.md describe it.
std::string list_json(std::span<const Experiment* const> list);
std::string outcomes_json(std::span<const Outcome> outcomes);

// One self-contained HTML page.
std::string outcomes_page(std::span<const Outcome> outcomes);

// docs/lab.md.
std::string outcomes_markdown(std::span<const Outcome> outcomes);

// A measured number as people read it: whole ones exactly, large ones without what is behind the
// point, others to four digits.
std::string number_text(double value);
// With its unit; bytes as everywhere else, "67.6 MB".
std::string measured_text(const Findings::Number& number);

}  // namespace heddle::lab
