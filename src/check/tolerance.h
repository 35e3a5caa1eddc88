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
  double gain = 1;     // by which errors grow on the way
};

double epsilon(DType dtype);

// Rounding errors are as good as random, so R of them add up to √R. With ε of the stored type, e of
// the type that is summed in (f32 for f32 and bf16, f64 for f64), whose parts are added up side by
// side, and S = 12 for the largest of many elements and 2 for their mean:
//   t = gain · S · √R · (ε + e · √terms / 4)
// Where the derivative jumps, the terms that rounding moves to the other side are wrong altogether.
// Of normal numbers that an error t moves, a share of t / 3 changes its sign, and the root of their
// mean square is √(t / 3) more in bf16.
double tolerance(const Way& way, DType dtype, Measure measure);

Way way_through(const model::ModelConfig& config);     // results, which have no jumps
Way there_and_back(const model::ModelConfig& config);  // gradients: twice as many roundings
// A part of a layer by itself, in both directions. Its inputs are exact, so nothing changes sides.
Way way_through_part(double roundings, const model::ModelConfig& config, std::int64_t tokens);

bool has_kinks(const model::ModelConfig& config);

// Whether the result of a pass follows its inputs so closely that rounding to this type can be told
// from a fault. Not where attention divides by a sum of relu, which may be nearly 0, in bf16.
bool comparable(const model::ModelConfig& config, DType dtype);

}  // namespace heddle::check
