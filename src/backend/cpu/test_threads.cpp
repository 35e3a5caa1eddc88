#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "backend/cpu/isa.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/threads.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

// Also on threads that a loop of the host has started.
TEST(Threads, EveryOneHasItsScratch) {
  const int before = thread_count();
  for (const bool host_first : {false, true}) {
    set_threads(3);
    if (host_first) heddle::parallel_chunks(12, [](std::int64_t) {});
    std::atomic<int> without{0};
    parallel_chunks(60, [&](std::int64_t) { without += thread_scratch() == nullptr ? 1 : 0; });
    EXPECT_EQ(without.load(), 0);
  }
  set_threads(before);
}

// The answer of a child process to HEDDLE_ISA=value: 7 and the message, or 0 and the choice.
int choose_isa(const char* value) {
  setenv("HEDDLE_ISA", value, 1);
  try {
    std::fprintf(stderr, "uses %s.", std::string(to_string(current_isa())).c_str());
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s", error.what());
    return 7;
  }
}

TEST(IsasDeathTest, VariableForcesOne) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (int i = 0; i < kIsaCount; ++i) {
    const std::string name(to_string(static_cast<Isa>(i)));
    const auto& all = available_isas();
    if (std::find(all.begin(), all.end(), static_cast<Isa>(i)) != all.end())
      EXPECT_EXIT(std::_Exit(choose_isa(name.c_str())), testing::ExitedWithCode(0),
                  "uses " + name + "\\.");
    else
      EXPECT_EXIT(std::_Exit(choose_isa(name.c_str())), testing::ExitedWithCode(7),
                  "HEDDLE_ISA: this machine lacks.*one of generic.*got " + name);
  }
  EXPECT_EXIT(std::_Exit(choose_isa("AVX2")), testing::ExitedWithCode(7),
              "HEDDLE_ISA: unknown instruction set.*one of generic.*got AVX2");
}

TEST(Isas, NamesRoundTripAndGenericIsAlwaysThere) {
  for (int i = 0; i < kIsaCount; ++i) {
    const auto isa = static_cast<Isa>(i);
    EXPECT_EQ(isa_from_name(to_string(isa)), isa);
  }
  EXPECT_THROW(isa_from_name("sse9"), Error);
  // Those of the other architecture have names, and are never there.
  const Isa foreign = kArchitecture == Architecture::arm64 ? Isa::avx2 : Isa::neon;
  EXPECT_EQ(std::count(available_isas().begin(), available_isas().end(), foreign), 0);
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), Isa::generic);
}

TEST(Isas, OnlyAvailableOnesCanBeChosen) {
  const Isa before = current_isa();
  for (int i = 0; i < kIsaCount; ++i) {
    const auto isa = static_cast<Isa>(i);
    const auto& all = available_isas();
    if (std::find(all.begin(), all.end(), isa) != all.end()) {
      set_isa(isa);
      EXPECT_EQ(current_isa(), isa);
    } else {
      EXPECT_THROW(set_isa(isa), Error);
    }
  }
  set_isa(before);
}

}  // namespace
}  // namespace heddle::cpu
