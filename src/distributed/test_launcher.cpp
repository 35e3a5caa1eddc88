#include <gtest/gtest.h>

#include <map>

#include "base/test_support.h"
#include "distributed/launcher.h"
#include "distributed/open_transport.h"

namespace heddle::distributed {

namespace {

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(Launcher, ReadsWhatLaunchersSet) {
  const Variables none;
  EXPECT_FALSE(launch_of(of(none)).distributed());
  const Variables open = {{"OMPI_COMM_WORLD_RANK", "2"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                          {"SLURM_PROCID", "0"},  // mpirun inside of a batch script
                          {"SLURM_STEP_NUM_TASKS", "1"}};
  const Launch mpirun = launch_of(of(open));
  EXPECT_TRUE(mpirun.distributed());
  EXPECT_TRUE(mpirun.can_join);
  EXPECT_EQ(mpirun.rank, 2);
  EXPECT_EQ(mpirun.size, 4);
  EXPECT_EQ(mpirun.local_size, 2);
  EXPECT_EQ(mpirun.by, "mpirun");
  const Variables pmi = {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}};
  EXPECT_EQ(launch_of(of(pmi)).size, 3);
  const Variables slurm = {
      {"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}};
  EXPECT_EQ(launch_of(of(slurm)).rank, 5);
  EXPECT_EQ(launch_of(of(slurm)).local_size, 2);
  // A batch script has these without srun.
  const Variables batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  EXPECT_FALSE(launch_of(of(batch)).distributed());
  const Variables torch = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "here"}};
  EXPECT_TRUE(launch_of(of(torch)).distributed());
  EXPECT_FALSE(launch_of(of(torch)).can_join);
  const Variables word = {{"RANK", "major"}, {"WORLD_SIZE", "large"}};
  EXPECT_FALSE(launch_of(of(word)).distributed());
  const Variables single = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_FALSE(launch_of(of(single)).distributed());
}

TEST(Launcher, RefusesWhatCannotBe) {
  const Variables word = {{"OMPI_COMM_WORLD_RANK", "one"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  expect_says([&] { launch_of(of(word)); }, {"OMPI_COMM_WORLD_RANK", "one"});
  const Variables high = {{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}};
  expect_says([&] { launch_of(of(high)); }, {"PMI_RANK", "PMI_SIZE", "below 4"});
}

TEST(Launcher, LooksForThePluginWhereItMayBe) {
  const Variables none;
  const auto places = plugin_places(of(none), "/opt/heddle/bin/heddle");
  EXPECT_EQ(places.front(), "/opt/heddle/bin/libheddle_mpi.so");
  EXPECT_EQ(places[1], "/opt/heddle/lib/libheddle_mpi.so");
  EXPECT_EQ(places.back(), "libheddle_mpi.so");
  const Variables named = {{"HEDDLE_MPI", "/elsewhere/mine.so"}};
  EXPECT_EQ(plugin_places(of(named), "/opt/heddle/bin/heddle"),
            std::vector<std::string>{"/elsewhere/mine.so"});
}

TEST(Launcher, WithoutAnEngineItSaysWhatToDo) {
  const Launch torch{1, 2, 1, "torchrun", false};
  expect_says([&] { open_transport(torch); }, {"torchrun", "no MPI", "mpirun -np 2"});
}

}  // namespace
}  // namespace heddle::distributed
