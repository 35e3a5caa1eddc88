// How far rounding alone may move a result. Above it, something is wrong.
#pragma once

#include <cstdint>

#include "check/values.h"
#include "heddle/dtype.h"
#include "model/config.h"

namespace heddle::check {

// How a result is made: `roundings` stored one after the other on the way from the inputs to it,
// and sums of at most `terms` between them.
struct Way {
  double roundings = 1;
  double terms = 1;
  bool kinks = false;  // the derivative jumps somewhere: relu
};

// Rounding errors are as good as random, so R of them add up to √R. With ε of the stored type, e of
// the type that is summed in (f32 for f32 and bf16, f64 for f64) and S = 8 for the largest of many
// elements (a quarter of it within sums, whose parts are added up side by side):
//   S · √R · (ε + e · √terms / 4)
double tolerance(const Way& way, DType dtype);

// The same for gradients, which go there and back: twice as much. Where the derivative jumps, a
// share of the terms that grows with the error t of what is rounded lies on the wrong side, and
// their mean square with it: √t / 4 more, by the mean of all elements.
double gradient_tolerance(const Way& way, DType dtype);
Measure gradient_measure(const Way& way, DType dtype);

Way way_through(const model::ModelConfig& config);
Way way_through_layer(const model::ModelConfig& config, std::int64_t tokens);

bool has_kinks(const model::ModelConfig& config);

// Whether the result of a pass follows its inputs so closely that rounding to this type can be told
// from a fault. Not where attention divides by a sum of relu, which may be nearly 0, in bf16.
bool comparable(const model::ModelConfig& config, DType dtype);

}  // namespace heddle::check
