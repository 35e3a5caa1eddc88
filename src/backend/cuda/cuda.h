// The CUDA backend, as the rest of the program sees it.
#pragma once

namespace heddle::cuda {

// Adds the routines; asks no driver.
void open();

// Adds the engines of this machine's GPUs, or explains why there is none.
void find_devices();

// Every src/ops/*/<name>.cu defines add_<name>_routines(); a generated file calls them all.
void add_routines();

}  // namespace heddle::cuda
