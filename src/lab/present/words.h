// Words of the lab's pages around the experiments; the code that shows them calls tr().
#pragma once

#include "lab/experiment.h"

namespace heddle::lab::said {

inline constexpr const char* lab = mark("The lab: the theory, run");
inline constexpr const char* about = mark(
    "Every claim below comes from study notes on recurrent networks, attention and Transformers. "
    "Some of those claims are wrong. Each experiment measures, with Heddle's own layers in float64 "
    "where they exist, and its verdict follows from the numbers of this run. The notes are "
    "numbered documents 000 to 004; what they are is said under “The documents”.");
inline constexpr const char* documents_title = mark("The documents");
inline constexpr const char* usage = mark(
    "`heddle lab list` shows the experiments, `heddle lab NAME...` runs some, `heddle lab all` "
    "those that take seconds, with `--slow` the others too. `--out page.html` draws a page with a "
    "figure for each, `--plant FAULT` makes the measurement of one experiment go wrong in a way "
    "that it must notice, `--lang zh` speaks Chinese, `--json` prints `{\"experiments\": [{name, "
    "claim, verdict, expected, pass, numbers, checks, seconds}]}`. The status is 1 when a measured "
    "verdict differs from the stated one. This page was written by `heddle lab all --slow "
    "--markdown docs/lab.md`.");
inline constexpr const char* claim = mark("Claim");
inline constexpr const char* source = mark("Source");
inline constexpr const char* method = mark("Method");
inline constexpr const char* threshold = mark("Threshold");
inline constexpr const char* numbers = mark("Numbers");
inline constexpr const char* measured = mark("Measured");
inline constexpr const char* quantity = mark("Quantity");
inline constexpr const char* key = mark("Key");
inline constexpr const char* condition = mark("Condition");
inline constexpr const char* required = mark("Compared with");
inline constexpr const char* met = mark("True");
inline constexpr const char* says = mark("Says of the claim");
inline constexpr const char* supports = mark("supports it");
inline constexpr const char* contradicts = mark("contradicts it");
inline constexpr const char* of_claim = mark("What decides");
inline constexpr const char* marks = mark("What decides (✓ supports the claim, ✗ contradicts it)");
inline constexpr const char* of_measurement = mark("Whether the measurement can be trusted");
inline constexpr const char* controls = mark(
    "These say nothing of the claim: their answers are known beforehand, and were any of them "
    "not met, there would be no verdict.");
inline constexpr const char* index = mark("Index");
inline constexpr const char* to_top = mark("top");
inline constexpr const char* formula = mark("Formula");
inline constexpr const char* yes = mark("yes");
inline constexpr const char* no = mark("no");
inline constexpr const char* verdict = mark("Verdict");
inline constexpr const char* stated = mark("Stated");
inline constexpr const char* differs = mark("differs from the stated verdict");
inline constexpr const char* failed = mark("did not come to an end");
inline constexpr const char* because = mark("Because");
inline constexpr const char* experiment = mark("Experiment");
inline constexpr const char* planted = mark("Planted");
inline constexpr const char* faults = mark("Faults");
inline constexpr const char* slow = mark("slow");
inline constexpr const char* seconds = mark("Seconds");

}  // namespace heddle::lab::said
