// Numbers that are extreme but legal: large and small scores, short contexts, narrow layers. Sound
// kernels pass, and faults are found all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/settings.h"
#include "check/check.h"
#include "check/paths.h"
#include "check/reduce.h"
#include "check/rounding.h"
#include "check/spread.h"
#include "check/test_support.h"
#include "check/tolerance.h"
#include "nn/attention/definition.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::check {
namespace {

using AttentionTable = cpu::AttentionKernels;

nn::book::Parameters ones_of_width_one() {
  nn::book::Parameters p;
  for (const char* name : {"q.weight", "k.weight", "v.weight", "out.weight"})
    p.emplace(name, Tensor::from<double>({1, 1}, {1.0}));
  return p;
}

nn::AttentionConfig thousandfold() {
  nn::AttentionConfig a;
  a.width = 1;
  a.heads = 1;
  a.scale = 1000;
  a.bias = a.out_bias = false;
  return a;
}

// s(i, j) = 1000 x(i) x(j), far above what exp can hold.
TEST(AttentionByTheBook, HoldsScoresOfThousands) {
  const Tensor x = Tensor::from<double>({1, 2, 1}, {1.0, 0.999});
  const auto w =
      nn::book::weights(thousandfold(), ones_of_width_one(), x, x, {}, 0).to_vector<double>();
  const double share = 1 / (1 + std::exp(-1.0));  // of scores that are 1 apart
  EXPECT_NEAR(w[0], share, 1e-12);
  EXPECT_NEAR(w[1], 1 - share, 1e-12);
  const double other = 1 / (1 + std::exp(-0.999));
  EXPECT_NEAR(w[2], other, 1e-12);
  EXPECT_NEAR(w[3], 1 - other, 1e-12);
}

TEST(AttentionByTheBook, AHiddenScoreMayBeLargerThanAllThatAreSeen) {
  nn::AttentionConfig a = thousandfold();
  a.causal = true;
  const Tensor x = Tensor::from<double>({1, 2, 1}, {1.0, 3.0});  // 3000 is hidden from query 0
  const auto w = nn::book::weights(a, ones_of_width_one(), x, x, {}, 0).to_vector<double>();
  EXPECT_EQ(w, (std::vector<double>{1, 0, 0, 1}));
}

TEST(AttentionByTheBook, ASinkMayBeLargerThanAllScores) {
  nn::AttentionConfig a = thousandfold();
  a.sinks = true;
  nn::book::Parameters p = ones_of_width_one();
  p.emplace("sinks", Tensor::from<double>({1}, {1002.0}));
  const Tensor x = Tensor::from<double>({1, 1, 1}, {1.0});
  EXPECT_NEAR(nn::book::weights(a, p, x, x, {}, 0).item(), 1 / (1 + std::exp(2.0)), 1e-12);
  // And what nobody sees counts for nothing.
  nn::book::Facts nothing;
  nothing.key_lengths = {0};
  EXPECT_EQ(nn::book::weights(a, p, x, x, nothing, 0).item(), 0);
  a.sinks = false;
  EXPECT_EQ(nn::book::weights(a, p, x, x, nothing, 0).item(), 0);
}

TEST(CheckRounding, MovesEveryNumberByItsShareAtMost) {
  const double epsilon = 0x1p-8;
  std::vector<double> v(1000, 3.0);
  Tensor a = Tensor::from<double>({1000}, std::span<const double>(v));
  Tensor b = Tensor::from<double>({1000}, std::span<const double>(v));
  Jitter{epsilon, 1}.move(a, 5);
  Jitter{epsilon, 2}.move(b, 5);
  double most = 0, sum = 0;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double apart = a.to_vector<double>()[i] / 3 - 1;
    most = std::max(most, std::abs(apart));
    sum += apart;
    alike += a.data<double>()[i] == b.data<double>()[i] ? 1 : 0;
  }
  EXPECT_LE(most, epsilon);
  EXPECT_GT(most, 0.98 * epsilon);
  EXPECT_LT(std::abs(sum / 1000), 0.06 * epsilon);  // even: a deviation of 1 / √3000
  EXPECT_LT(alike, 5u);
}

TEST(CheckRounding, LeavesPlantedKernelsAsTheyWere) {
  static AttentionTable table = cpu::native_kernels<AttentionTable>(cpu::Isa::generic);
  cpu::planted_kernels<AttentionTable> = &table;
  {
    const RoundedKernels rounded(Jitter{0x1p-8, 1});
    EXPECT_NE(cpu::planted_kernels<AttentionTable>, &table);
  }
  EXPECT_EQ(cpu::planted_kernels<AttentionTable>, &table);
  cpu::planted_kernels<AttentionTable> = nullptr;
}

// Draws are of four times the rounding. y = exp(1000 x) moves 1000 times as far as x, z = x as far.
TEST(CheckSpread, FollowsHowFarResultsMove) {
  const cpu::SettingsScope restore;
  const auto results = [](const Jitter& jitter) {
    Tensor x = Tensor::full({500}, 1, DType::f64);
    jitter.move(x, 1);
    std::vector<double> y = x.to_vector<double>();
    for (double& v : y) v = std::exp(1000 * (v - 1));
    return std::vector<Named>{{"y", Tensor::from<double>({500}, std::span<const double>(y)), "y"},
                              {"z", x, "z"}};
  };
  const Spreads s = measure_spreads(results);
  const double even = 1 / std::sqrt(3);  // of a number between -1 and 1
  EXPECT_NEAR(s.of("z", DType::f32, Measure::mean), even * 0x1p-21, 0.1 * 0x1p-21);
  EXPECT_NEAR(s.of("y", DType::f32, Measure::mean), 1000 * even * 0x1p-21, 100 * 0x1p-21);
  EXPECT_NEAR(s.of("y", DType::f64, Measure::mean), 1000 * even * 0x1p-50, 100 * 0x1p-50);
  EXPECT_NEAR(s.of("z", DType::bf16, Measure::largest), 0x1p-7, 0.05 * 0x1p-7);  // |b| + r = 2
  const Way way{.roundings = 1, .terms = 16};
  const Allowance allowance{way, &s};
  EXPECT_EQ(allowed(allowance, "z", DType::f32, Measure::mean),
            std::max(tolerance(way, DType::f32, Measure::mean),
                     2 * s.of("z", DType::f32, Measure::mean)));
  EXPECT_FALSE(allowed(allowance, "y", DType::bf16, Measure::mean));  // anything: not compared
  EXPECT_TRUE(allowed(allowance, "y", DType::f64, Measure::mean));
  EXPECT_EQ(allowed({way}, "y", DType::bf16, Measure::mean),
            tolerance(way, DType::bf16, Measure::mean));
}

model::ModelConfig extreme_decoder() {
  model::ModelConfig m;
  m.layers = 2;
  m.width = 12;
  m.attention.heads = 2;
  m.attention.position = nn::RopePosition{};
  m.sizes.vocabulary = 19;
  m.sizes.context = 17;
  return m;
}

bool wrong_in(const Report& report, DType dtype) {
  for (const Case& c : report.cases)
    if (!c.pass() && c.dtype == dtype) return true;
  return false;
}

TEST(CheckExtremes, SoundKernelsPassWhateverTheSizeOfTheScores) {
  for (const auto& [scale, cap] :
       {std::pair{1e-3, 0.0}, {10.0, 0.0}, {1000.0, 0.0}, {1.0, 0.01}, {100.0, 1000.0}}) {
    model::ModelConfig m = extreme_decoder();
    m.attention.scale = scale;
    m.attention.softcap = cap;
    const Report r = check_model(m, {.threads = {1}});
    EXPECT_TRUE(r.pass()) << scale << " " << cap << "\n" << failures(r);
    // f64 and f32 are compared always.
    for (const DType dtype : {DType::f64, DType::f32}) {
      std::set<std::string> paths;
      for (const Case& c : r.cases)
        if (c.dtype == dtype) paths.insert(c.path);
      EXPECT_TRUE(paths.contains("attention, by definition"));
      EXPECT_TRUE(paths.contains("logits"));
      EXPECT_TRUE(paths.contains("gradients"));
      EXPECT_TRUE(paths.contains("generation, in blocks"));
    }
  }
}

TEST(CheckExtremes, SoundKernelsPassInTheNarrowestLayers) {
  for (const std::int64_t width : {1, 2, 3})
    for (const nn::NormKind norm : {nn::NormKind::layer, nn::NormKind::rms}) {
      model::ModelConfig m = extreme_decoder();
      m.width = width;
      m.attention.heads = 1;
      m.attention.position = nn::AlibiPosition{};
      m.attention.scale = 100;
      m.norm = norm;
      m.norm_place = model::NormPlace::post;
      const Report r = check_model(m, {.threads = {1}});
      EXPECT_TRUE(r.pass()) << width << "\n" << failures(r);
    }
}

// Class tokens make sequences one longer, on the meta device too.
TEST(CheckExtremes, SoundKernelsPassWithAClassToken) {
  model::ModelConfig m = extreme_decoder();
  m.kind = model::Kind::encoder;
  m.task = model::Task::classify;
  m.sizes.classes = 3;
  const Report r = check_model(m, {.threads = {1}});
  EXPECT_TRUE(r.pass()) << failures(r);
}

// One part in a hundred, in both directions and on every instruction set alike.
TEST(CheckExtremes, AWrongScaleIsFoundWhateverItsSize) {
  static AttentionTable table;
  table = cpu::native_kernels<AttentionTable>(cpu::Isa::generic);
  table.forward = [](const cpu::AttentionArgs& a) noexcept {
    cpu::AttentionArgs b = a;
    b.scale *= 1.01;
    cpu::native_kernels<AttentionTable>(cpu::current_isa()).forward(b);
  };
  table.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
    cpu::AttentionBackwardArgs b = a;
    b.forward.scale *= 1.01;
    cpu::native_kernels<AttentionTable>(cpu::current_isa()).backward(b);
  };
  for (const double scale : {1e-3, 0.3, 10.0, 1000.0}) {
    model::ModelConfig m = extreme_decoder();
    m.attention.scale = scale;
    cpu::planted_kernels<AttentionTable> = &table;
    const Report r = check_model(m, {.threads = {1}});
    cpu::planted_kernels<AttentionTable> = nullptr;
    EXPECT_TRUE(wrong_in(r, DType::f64)) << scale;
    EXPECT_TRUE(wrong_in(r, DType::f32)) << scale;
  }
}

// A result that is no number is wrong, also where rounding leaves nothing to compare.
TEST(CheckExtremes, NanIsFoundWhereNothingElseIsCompared) {
  Report report;
  Spreads wide;
  wide.bf16.add({{"a", "a", 10.0, 10.0}});
  const Setting setting{DType::bf16, cpu::Isa::generic, 1};
  const Allowance allowance{Way{}, &wide};
  add_case(report, "path", setting, {{"a", "a", 5.0, 5.0}}, allowance);
  EXPECT_TRUE(report.cases.empty());
  EXPECT_EQ(report.notes.size(), 1u);
  add_case(report, "path", setting, {{"a", "a", HUGE_VAL, HUGE_VAL}}, allowance);
  ASSERT_EQ(report.cases.size(), 1u);
  EXPECT_FALSE(report.pass());
}

struct Mask {
  const char* kind;  // and task
  const char* keys;  // of [model.attention]
  const char* data;
};

const Mask kMasks[] = {
    {"decoder\"", "", ""},
    {"decoder\"", "look_back = 0", ""},
    {"decoder\"", "look_back = 5", ""},
    {"decoder\"", "prefix = true", ""},
    {"decoder\"", "prefix = true\nlook_back = 3", ""},
    {"decoder\"", "position = \"learned\"", "documents = \"line\""},
    {"decoder\"", "prefix = true\nposition = \"t5\"", "documents = \"line\""},
    {"encoder\"\ntask = \"masked\"", "", ""},
    {"encoder\"\ntask = \"masked\"", "look_back = 2\nlook_ahead = 0", ""},
    {"encoder\"\ntask = \"masked\"", "look_ahead = 4\nposition = \"t5\"", "documents = \"line\""},
};

train::Recipe recipe_with(const Mask& mask, int context) {
  const std::string path = testing::TempDir() + "heddle_check_extremes.toml";
  std::ofstream(path) << "[model]\nkind = \"" << mask.kind
                      << "\nlayers = 1\nwidth = 4\n[model.attention]\n"
                      << mask.keys
                      << "\n[data]\ntext = \"a.txt\"\ntokenizer = \"char\"\ncontext = " << context
                      << "\n"
                      << mask.data << "\n[train]\nsteps = 1\nbatch = 1\n";
  train::Recipe recipe = train::load_recipe(path);
  std::filesystem::remove(path);
  return recipe;
}

TEST(CheckExtremes, EveryMaskAtEveryShortContext) {
  const cpu::SettingsScope restore;
  for (const Mask& mask : kMasks)
    for (int context = 1; context <= 16; ++context) {
      SCOPED_TRACE(std::string(mask.kind) + " " + mask.keys + " " + std::to_string(context));
      const train::Recipe recipe = recipe_with(mask, context);
      const model::ModelConfig m = reduced(recipe);
      EXPECT_EQ(m.sizes.context, context);
      EXPECT_EQ(m.attention.prefix, recipe.model.attention.prefix);
      EXPECT_EQ(m.attention.look_back.has_value(), recipe.model.attention.look_back.has_value());
      Subject subject(m, 0, recipe.data.documents != data::Documents::none);
      subject.threads = {1};
      subject.progress = [](const std::string&) {};
      Report report;
      check_generation(subject, report);
      check_passes(subject, report);
      EXPECT_TRUE(report.pass()) << failures(report);
    }
}

}  // namespace
}  // namespace heddle::check
