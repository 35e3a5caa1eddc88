// An experiment of the lab: a claim of a study document, measured.
//
// One file per experiment, listed in experiments.cpp. The file reads as an explanation: what is
// claimed, how it is measured, which numbers decide, and why the verdict is what it is. The verdict
// is computed from the measured numbers in every run and compared with `expected`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "language/language.h"

namespace heddle::lab {

// Of the claim as the experiment states it.
enum class Verdict : std::uint8_t {
  holds,
  conditional,  // holds under a condition that the claim does not name; `because` names it
  refuted,
};

std::string_view to_string(Verdict verdict);  // as in JSON
std::string words(Verdict verdict);           // for people, in their language

class Findings;

// A small and realistic way in which a measurement could be wrong. The measurement asks
// Findings::fault() for it by name; with the fault planted the experiment must not pass.
struct Fault {
  std::string name;  // as on the command line: "next-rows"
  std::string what;
};

// Its texts are English and marked (language/language.h): who shows them says tr(). The readers of
// the documents are students in China, so everything is said in both languages.
struct Experiment {
  std::string name;   // as on the command line: "elman-and"
  std::string topic;  // what experiments are grouped by; one of topics.h
  std::string title;
  std::string claim;  // what is put to the test, in one or two sentences
  std::string formula =
      {};              // of the claim, in the notation of report/page/formula.h; empty: it has none
  std::string source;  // which document says so, and where
  std::string method;  // what is computed
  std::string threshold;  // what decides, and why there
  Verdict expected = Verdict::holds;
  std::string because;  // why the verdict is what it is, without numbers: those are measured
  std::vector<Fault> faults = {};  // a test plants each of them
  bool slow = false;               // trains for longer than a few seconds: `lab all` leaves it out
  void (*run)(Findings&) = nullptr;
};

}  // namespace heddle::lab
