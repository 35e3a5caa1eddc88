// The CPU's routines for the calls of ops.
#pragma once

namespace heddle::cpu {

// Every src/ops/*/<name>.cpu.cpp defines add_<name>_routines(), and add_<name>_gradient_routines()
// where ops.def says so; a generated file calls them all: the second function those of gradients
// and optimisers.
void add_routines();
void add_training_routines();

}  // namespace heddle::cpu
