// Formulas: MathML for pages, one line of text for terminals, from a notation of a few words.
//
//   a_i = frac{exp(s_i)}{sum_j exp(s_j)},  s = frac{k^T W q}{sqrt{d}}
//
// Letters and Greek are variables, longer words are upright (softmax, max), "quoted" text is text.
// `_` and `^` take the next letter, number or {group}; frac{…}{…}, sqrt{…}; sum and prod have what
// `_` and `^` give below and above them. quad is a wide space, between two formulas.
#pragma once

#include <string>
#include <string_view>

#include "report/page/html.h"

namespace heddle::report {

// A block of its own. Throws Error that names the place for a notation that is wrong.
Html formula(std::string_view notation);

// "a_i = exp(s_i)/(Σ_j exp(s_j))"
std::string formula_text(std::string_view notation);

}  // namespace heddle::report
