// The comparisons of a check, each in a file of its own.
#pragma once

#include "check/report.h"
#include "check/subject.h"

namespace heddle::check {

// Parts of the model (attention, norm, feed-forward, recurrence, classifier) against their
// definitions in plain float64 ops: results and gradients, longer than a tile of the kernels.
void check_definitions(const Subject& subject, Report& report);

// Gradients of the whole loss in float64 against differences of it.
void check_differences(const Subject& subject, Report& report);

// Loss, logits and gradients of every setting against float64; the same bits for any number of
// threads.
void check_passes(const Subject& subject, Report& report);

// Logits of generation, token by token and in blocks, against those of the whole pass.
void check_generation(const Subject& subject, Report& report);

// Choices of training that must not change the result: recomputation, parts of a batch; and the
// bytes that a plan predicts.
void check_training(const Subject& subject, Report& report);

}  // namespace heddle::check
