// Are the tiles right? A range of odd shapes, layouts and epilogues against float64.
#pragma once

#include "backend/cpu/gemm/gemm.h"

namespace heddle::bench {

// Prints what it finds, also whether the number of threads changes bits. `other`, if not null, runs
// the same jobs, and the bits that differ from it are counted.
bool check_products(const cpu::GemmPath& path, const cpu::GemmPath* other);

}  // namespace heddle::bench
