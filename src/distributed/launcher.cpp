#include "distributed/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "heddle/error.h"

namespace heddle::distributed {

namespace {

struct Variables {
  const char* by;
  const char* rank;
  const char* size;
  const char* local_size;
  bool can_join;
};

// SLURM_NTASKS is also there in a batch script that srun did not start, so it is not asked.
constexpr std::array kLaunchers = {
    Variables{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
              "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    Variables{"a launcher with PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", true},
    Variables{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", true},
    Variables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", false}};

std::optional<int> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const char* end = text + std::strlen(text);
  int value = 0;
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0)
    fail(ErrorCode::invalid_argument, name, "is not what a launcher sets",
         "a number from 0 on; unset it where no launcher is meant", text);
  return value;
}

}  // namespace

Launch launch_of(const Environment& environment) {
  for (const Variables& v : kLaunchers) {
    const char* rank_text = environment(v.rank);
    const char* size_text = environment(v.size);
    if (rank_text == nullptr || size_text == nullptr) continue;
    // RANK and WORLD_SIZE are common words: torchrun sets where to meet as well.
    if (!v.can_join && environment("MASTER_ADDR") == nullptr) continue;
    const std::optional<int> rank = number(environment, v.rank), size = number(environment, v.size);
    if (!rank || !size) continue;
    if (*size < 1 || *rank >= *size)
      fail(ErrorCode::invalid_argument, v.rank, "does not fit " + std::string(v.size),
           "a rank below " + std::to_string(*size), std::to_string(*rank));
    Launch launch{*rank, *size, 1, v.by, v.can_join};
    if (const char* local = environment(v.local_size); local != nullptr) {
      int value = 0;
      const auto [stop, error] = std::from_chars(local, local + std::strlen(local), value);
      (void)stop;  // srun says "2(x3)": the first number is this one's
      if (error == std::errc{} && value > 0) launch.local_size = value;
    }
    return launch;
  }
  return {};
}

Launch launch() {
  return launch_of([](const char* name) { return std::getenv(name); });
}

}  // namespace heddle::distributed
