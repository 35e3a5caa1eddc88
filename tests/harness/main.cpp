// Registers a test for every case × check, for every planted mutant, and for the completeness of
// the table.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string_view>

#include "harness/harness.h"

namespace heddle::harness {
namespace {

constexpr auto kOpNames = std::to_array<std::string_view>({
#include "op_names.inc"
});

using Check = Faults (*)(const Case&);

struct NamedCheck {
  const char* name;
  Check check;
};

constexpr std::array<NamedCheck, 5> kChecks = {{{"float64", check_float64},
                                                {"gradient", check_gradient},
                                                {"kernels", check_kernels},
                                                {"threads", check_threads},
                                                {"meta", check_meta}}};

class CaseTest : public testing::Test {
 public:
  CaseTest(const Case& c, Check check) : case_(c), check_(check) {}
  void TestBody() override {
    for (const std::string& fault : check_(case_)) ADD_FAILURE() << fault;
  }

 private:
  const Case& case_;
  Check check_;
};

// A mutant lives if no check of its op finds anything.
class MutantTest : public testing::Test {
 public:
  explicit MutantTest(const Mutant& m) : mutant_(m) {}
  void TestBody() override {
    mutant_.plant();
    bool caught = false;
    for (const Case& c : cases()) {
      if (c.op != mutant_.op) continue;
      for (const NamedCheck& check : kChecks) caught = caught || finds(check, c);
      if (caught) break;
    }
    mutant_.remove();
    EXPECT_TRUE(caught) << "the fault was not noticed";
  }

 private:
  // A fault that makes a check throw is found as well.
  static bool finds(const NamedCheck& check, const Case& c) {
    try {
      return !check.check(c).empty();
    } catch (const std::exception&) {
      return true;
    }
  }

  const Mutant& mutant_;
};

class CoverageTest : public testing::Test {
 public:
  void TestBody() override {
    std::set<std::string_view> covered;
    for (const Case& c : cases()) covered.insert(c.op);
    for (const std::string_view op : kOpNames)
      EXPECT_TRUE(covered.contains(op)) << op << " has no case";
    for (const std::string_view op : covered)
      EXPECT_TRUE(std::find(kOpNames.begin(), kOpNames.end(), op) != kOpNames.end())
          << op << " is not in ops.def";
    std::set<std::string_view> mutated;
    for (const Mutant& m : mutants()) mutated.insert(m.op);
    for (const std::string_view op : kOpNames)
      EXPECT_TRUE(mutated.contains(op)) << op << " was never convicted of a fault";
  }
};

void register_all() {
  for (const Case& c : cases())
    for (const NamedCheck& check : kChecks)
      testing::RegisterTest(c.op.c_str(), (c.name + "/" + check.name).c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [&c, &check] { return new CaseTest(c, check.check); });
  for (const Mutant& m : mutants())
    testing::RegisterTest("mutants", (m.op + "/" + m.name).c_str(), nullptr, nullptr, __FILE__,
                          __LINE__, [&m] { return new MutantTest(m); });
  testing::RegisterTest("harness", "every op is covered", nullptr, nullptr, __FILE__, __LINE__,
                        [] { return new CoverageTest; });
}

}  // namespace
}  // namespace heddle::harness

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  heddle::harness::register_all();
  return RUN_ALL_TESTS();
}
