// Properties of a GPU by which kernels are chosen.
#pragma once

#include "heddle/device.h"

namespace heddle::cuda {

struct GpuTraits {
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 1;
};

// Of a meta device: those of this machine's first GPU, and where there is none, of an H200.
GpuTraits traits_of(Device device);

}  // namespace heddle::cuda
