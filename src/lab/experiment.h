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

namespace heddle::lab {

enum class Language : std::uint8_t { english, chinese };

// The readers of the documents are students in China: everything is said in both languages.
struct Text {
  std::string en, zh;

  const std::string& in(Language language) const { return language == Language::english ? en : zh; }
};

// Of the claim as the experiment states it.
enum class Verdict : std::uint8_t {
  holds,
  conditional,  // holds under a condition that the claim does not name; `because` names it
  refuted,
};

std::string_view to_string(Verdict verdict);  // as in JSON
const Text& words(Verdict verdict);           // for people

class Findings;

// A small and realistic way in which a measurement could be wrong. The measurement asks
// Findings::fault() for it by name; with the fault planted the experiment must not pass.
struct Fault {
  std::string name;  // as on the command line: "next-rows"
  Text what;
};

struct Experiment {
  std::string name;  // as on the command line: "elman-and"
  Text topic;        // what experiments are grouped by; one of topics.h
  Text title;
  Text claim;      // what is put to the test, in one or two sentences
  Text source;     // which document says so, and where
  Text method;     // what is computed
  Text threshold;  // what decides, and why there
  Verdict expected = Verdict::holds;
  Text because;  // why the verdict is what it is, without numbers: those are measured
  std::vector<Fault> faults = {};  // a test plants each of them
  bool slow = false;               // trains for longer than a few seconds: `lab all` leaves it out
  void (*run)(Findings&) = nullptr;
};

}  // namespace heddle::lab
