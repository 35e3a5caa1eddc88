// How far rounding alone may move a result. Above it, something is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  double cancels = 1;  // how much more than the spread is left where nearly all cancels
  double capped = 0;   // size of scores behind a cap; 0: there is no cap
};

struct Spreads;

// The limits of a comparison: rounding along the way, and the measured effect of rounding on the
// results (see measure_spreads()); null: the way alone.
struct Allowance {
  Way way;
  const Spreads* spreads = nullptr;
};

double epsilon(DType dtype);

// Rounding errors are as good as random, so R of them add up to √R. With ε of the stored type, e of
// the type that is summed in (f32 for f32 and bf16, f64 for f64), whose parts are added up side by
// side, and S = 12 for the largest of many elements and 2 for their mean:
//   t = gain · S · √R · (ε + e · √terms / 4)
// Where the derivative jumps, the terms that rounding moves to the other side are wrong altogether.
// Of normal numbers that an error t moves, a share of t / 3 changes its sign, and the root of their
// mean square is √(t / 3) more in bf16.
// A score behind a cap is rounded where it may be large, and exp turns that into an error of
// weights in proportion. No moved input shows it, because the cap flattens what comes before it. So
// t is S · e · capped / 4 more.
double tolerance(const Way& way, DType dtype, Measure measure);

// A way knows nothing of the numbers. Scores of 1000 multiply the errors of queries and keys by as
// much, a small cap divides by itself, and a norm of two columns by their difference: that is what
// the spread of the results shows, the most that was seen in a few draws of several times the
// rounding. The limit is the larger of t and
//   spread · (ε + e · √terms / 4) / ε
// because draws move numbers once, and sums round at every term. Nothing where the spread is above
// 0.15 in the mean or 0.75 at the largest: results jump there, and no size of an error is a proof.
std::optional<double> allowed(const Allowance& allowance, const std::string& group, DType dtype,
                              Measure measure);
// The second of the two. Its allowance has spreads.
std::optional<double> allowed_spread(const Allowance& allowance, const std::string& group,
                                     DType dtype, Measure measure);

// Errors of many elements average out; those of a few may all be large. How many times as far as
// the mean of many that of so few may be off: normal numbers are above both equally rarely (1e-5).
double slack_of_few(std::int64_t elements);

Way way_through(const model::ModelConfig& config);     // results, which have no jumps
Way there_and_back(const model::ModelConfig& config);  // gradients: twice as many roundings
// A part of a layer by itself, in both directions. Its inputs are exact, so nothing changes sides.
Way way_through_part(double roundings, const model::ModelConfig& config, std::int64_t tokens);

// Whether the derivative of the bend jumps.
bool bends_sharply(nn::FfnKind kind);
bool has_kinks(const model::ModelConfig& config);

// Whether the result of a pass follows its inputs so closely that rounding to this type can be told
// from a fault. Not where attention divides by a sum of relu, which may be nearly 0, in bf16, nor
// where a cap turns scores into signs that rounding decides: scale · √D / cap above 1 / ε.
bool comparable(const model::ModelConfig& config, DType dtype);

}  // namespace heddle::check
