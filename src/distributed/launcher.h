// Whether this process is one of several that a launcher started together.
#pragma once

#include <functional>
#include <string>

namespace heddle::distributed {

struct Launch {
  int rank = 0, size = 1;
  int local_size = 1;    // of them on this machine, as far as the launcher says
  std::string by = {};   // "mpirun"; empty: nobody
  bool can_join = true;  // false: the launcher tells ranks, but starts no MPI

  bool distributed() const { return size > 1; }
};

// The value of an environment variable; nullptr: not set.
using Environment = std::function<const char*(const char*)>;

// Asks the variables of Open MPI, PMI (MPICH, Intel), SLURM's srun and torchrun, in this order.
// Error where one of them is no number, or the rank is not below the size.
Launch launch_of(const Environment& environment);
Launch launch();  // of this process

}  // namespace heddle::distributed
