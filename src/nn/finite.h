// Where a NaN or an infinity came from.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "language/sentence.h"
#include "nn/parameters.h"

namespace heddle::nn {

// "nan", "inf" or "-inf": without the sign that a NaN may have.
std::string bad_text(double bad);

// "nan at [3, 17]" for the first element that is not finite; empty when all are.
std::string first_bad_value(const Tensor& tensor);

// Throws Error, in the name of `where`, for a parameter that is not finite. Looking at what a model
// makes is not enough: attention gives a NaN among its scores no weight, so that a bad query or key
// weight leaves scores that look like any others.
void check_parameters(const nn::Parameters& parameters, std::string_view where);

// Looks for the first bad value of a computation that is known to have one: in the parameters, then
// in what the ops of `pass` (forward and backward, which it must record) make, in their order. The
// sentence names the parameter, or the op with the parameters that it reads. Empty when everything
// was finite after all.
Sentence explain_bad_value(const nn::Parameters& parameters, const std::function<void()>& pass);

}  // namespace heddle::nn
