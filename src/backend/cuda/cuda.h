// Every src/ops/*/<name>.cu defines add_<name>_routines(); a generated file calls them all.
#pragma once

namespace heddle::cuda {

void add_routines();

}  // namespace heddle::cuda
