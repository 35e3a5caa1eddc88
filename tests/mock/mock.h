// A second device for tests, and the example to follow when writing a backend (docs/backends.md):
// device plugin:0.
//
// Its memory cannot be read through its addresses except by itself, nothing that is downloaded
// is there before a wait for it, and it has routines for the eight plain ops only: copy, fill
// (the engine's), unary, binary, reduce, matmul, gather, random. Training on it uses nothing
// else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/device.h"
#include "heddle/tensor.h"

namespace heddle::mock {

// The device; the first call adds it to the program.
Device device();

// Where the host can reach what lies at an address of the device: for its own routines.
std::byte* behind(const Tensor& x);

std::int64_t live_bytes();  // of its memory

void add_routines();

}  // namespace heddle::mock
