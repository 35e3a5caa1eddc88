#pragma once

#include <memory>

#include "heddle/tape.h"

namespace heddle::autograd {

// A tape inside of the backward pass of another one. The constructor of Tape brings the routines of
// gradients into a program; a model calls recompute() whether it is trained or not, so recompute()
// must not name that constructor. It was called before, for the outer tape.
std::unique_ptr<Tape> nested_tape();

}  // namespace heddle::autograd
