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
#include "check/spread.h"
#include "check/test_support.h"
#include "check/tolerance.h"
#include "nn/attention/definition.h"
#include "ops/attention/attention.kernels.h"
#include "run/recipe_file.h"

namespace heddle::check {
namespace {

using AttentionTable = cpu::AttentionKernels;
using GradientTable = cpu::AttentionGradientKernels;

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
  // And keys that no query sees count for nothing.
  nn::book::Facts nothing;
  nothing.key_lengths = {0};
  EXPECT_EQ(nn::book::weights(a, p, x, x, nothing, 0).item(), 0);
  a.sinks = false;
  EXPECT_EQ(nn::book::weights(a, p, x, x, nothing, 0).item(), 0);
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
      m.norm_place = nn::NormPlace::post;
      const Report r = check_model(m, {.threads = {1}});
      EXPECT_TRUE(r.pass()) << width << "\n" << failures(r);
    }
}

// A bias of two numbers gets the sum over the tokens of six heads each, of which little is left.
TEST(CheckExtremes, SoundKernelsPassWhereManyHeadsShareTheirValues) {
  model::ModelConfig m = extreme_decoder();
  m.kind = model::Kind::encoder;
  m.task = model::Task::classify;
  m.sizes.context = 3;
  m.sizes.classes = 3;
  m.attention.heads = 12;
  m.attention.kv_heads = 2;
  m.attention.position = nn::SinusoidalPosition{};
  m.qk_norm = nn::QkNorm::head;
  const Report r = check_model(m, {.threads = {1}});
  EXPECT_TRUE(r.pass()) << failures(r);
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
  static GradientTable gradient;
  gradient = cpu::native_kernels<GradientTable>(cpu::Isa::generic);
  gradient.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
    cpu::AttentionBackwardArgs b = a;
    b.forward.scale *= 1.01;
    cpu::native_kernels<GradientTable>(cpu::current_isa()).backward(b);
  };
  for (const double scale : {1e-3, 0.3, 10.0, 1000.0}) {
    model::ModelConfig m = extreme_decoder();
    m.attention.scale = scale;
    cpu::planted_kernels<AttentionTable> = &table;
    cpu::planted_kernels<GradientTable> = &gradient;
    const Report r = check_model(m, {.threads = {1}});
    cpu::planted_kernels<AttentionTable> = nullptr;
    cpu::planted_kernels<GradientTable> = nullptr;
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

recipe::Recipe recipe_of_text(const std::string& text) {
  const std::string path = testing::TempDir() + "heddle_check_extremes.toml";
  std::ofstream(path) << text << "\n[train]\nsteps = 1\nbatch = 1\n";
  recipe::Recipe recipe = run::load_recipe(path);
  std::filesystem::remove(path);
  return recipe;
}

recipe::Recipe recipe_with(const Mask& mask, int context) {
  return recipe_of_text(std::string("[model]\nkind = \"") + mask.kind +
                        "\nlayers = 1\nwidth = 4\n[model.attention]\n" + mask.keys +
                        "\n[data]\ntext = \"a.txt\"\ntokenizer = \"char\"\ncontext = " +
                        std::to_string(context) + "\n" + mask.data);
}

Subject subject_of(const model::ModelConfig& m, bool documents = false) {
  Subject subject(m, 0, documents);
  subject.threads = {1};
  subject.progress = [](const std::string&) {};
  return subject;
}

TEST(CheckExtremes, EveryMaskAtEveryShortContext) {
  const cpu::SettingsScope restore;
  for (const Mask& mask : kMasks)
    for (int context = 1; context <= 16; ++context) {
      SCOPED_TRACE(std::string(mask.kind) + " " + mask.keys + " " + std::to_string(context));
      const recipe::Recipe recipe = recipe_with(mask, context);
      const model::ModelConfig m = reduced(recipe);
      EXPECT_EQ(m.sizes.context, context);
      EXPECT_EQ(m.attention.prefix, recipe.model.attention.prefix);
      EXPECT_EQ(m.attention.look_back.has_value(), recipe.model.attention.look_back.has_value());
      const Subject subject = subject_of(m, recipe.data.documents != data::Documents::none);
      Report report;
      check_generation(subject, report);
      check_passes(subject, report);
      EXPECT_TRUE(report.pass()) << failures(report);
    }
}

// Differences of tanh, 638 times as large, in layers of two columns: 16 and more roundings, each of
// which grows on its way through all that follow.
constexpr const char* kManyRoundings = R"([model]
kind = "encoder-decoder"
layers = 1
decoder_layers = 3
width = 2
norm = "rms"
ffn_width = 1
embedding_dropout = 0.52
bias = false
[model.attention]
head_width = 4
heads = 6
score = "additive"
scale = 637.7635
dropout = 0.242
look_back = 31
[data]
pairs = "a.tsv"
tokenizer = "word"
max_length = 64)";

// A score that is a sum of one number for the query and one for the key: a single choice between
// two keys decides every row.
constexpr const char* kOneChoice = R"([model]
kind = "encoder"
layers = 1
task = "classify"
width = 228
norm = "rms"
norm_place = "post"
ffn_width = 15
pooling = "mean"
[model.attention]
heads = 12
kv_heads = 12
score = "concat"
scale = 688.8025
position = "learned"
[data]
labelled = "a.tsv"
tokenizer = "char"
max_length = 20)";

// Layer norms of three columns.
constexpr const char* kThreeColumns = R"([model]
kind = "encoder"
layers = 2
task = "masked"
width = 7
norm_place = "post"
norm_epsilon = 4.822836e-05
dropout = 0.3357777
bias = false
tied = false
scale_embedding = true
[model.attention]
heads = 7
score = "multiplicative"
scale = 0.1470542
softcap = 948.8854
look_back = 21
position = "learned"
[data]
text = "a.txt"
tokenizer = "bpe:280"
context = 7)";

// Scores far above their cap: the loss is a row of steps, and bends within a thousandth of a
// weight.
constexpr const char* kBent = R"([model]
kind = "vit"
layers = 2
width = 72
ffn = "swiglu"
dropout = 0.1216368
patch = 4
[model.attention]
head_width = 36
heads = 4
scale = 21.07218
softcap = 0.05583182
look_back = 30
position = "learned"
[data]
image_folder = "images")";

// The cap flattens errors of queries and keys, and its own rounding is what is left: no draw of
// moved inputs shows that.
constexpr const char* kFlattened = R"(
[model]
kind = "decoder"
layers = 1
width = 14
norm_epsilon = 1.142007e-06
ffn = "gelu-tanh"
embedding_dropout = 2.327506e-01
bias = false
scale_embedding = false
[model.attention]
heads = 7
scale = 7.325324e+02
softcap = 1.795384e+02
look_back = 6
position = "alibi"
[data]
text = "text.txt"
tokenizer = "byte"
context = 6
)";

// RMS norms of one column, behind scores whose gradient is 0 by mathematics.
constexpr const char* kSignOfOneColumn = R"([model]
kind = "encoder"
layers = 1
task = "masked"
width = 3
norm = "rms"
qk_norm = "full"
out_bias = false
ffn = "relu2"
ffn_width = 2
dropout = 4.914174e-01
[model.attention]
head_width = 1
heads = 1
score = "multiplicative"
scale = 6.875180e+02
position = "learned"
[data]
text = "text.txt"
tokenizer = "byte"
context = 1)";

// Gradients so small beside the logits that they once seemed to hold still.
constexpr const char* kSmallGradients = R"([model]
kind = "encoder-decoder"
layers = 1
width = 2
norm = "rms"
norm_place = "sandwich"
layer_scale = 1.650156e-02
tied = false
head_bias = true
[model.attention]
heads = 1
kv_heads = 1
score = "additive"
position = "none"
[data]
pairs = "pairs.tsv"
tokenizer = "char"
max_length = 64
target_tokenizer = "word")";

// In three parts the second has one token, whose target does not count, at an expert of its own:
// that expert has a gradient of 0 from the whole batch, and none from the parts.
constexpr const char* kNothingCounted = R"([model]
kind = "encoder"
layers = 1
task = "masked"
width = 119
norm_place = "branch"
qk_norm = "head"
out_bias = false
ffn = "moe"
ffn_width = 45
bias = false
logit_scale = 2.083345e-01
embedding_scale = 2.376909e+00
init = "fan-in"
[model.attention]
head_width = 12
heads = 16
kv_heads = 16
score = "additive"
position = "learned"
[model.moe]
experts = 6
active = 2
expert = "swiglu"
capacity = 1.320613e+00
[data]
text = "text.txt"
tokenizer = "char"
context = 3)";

// A feed-forward part of one unit: the gradient of its bias is one number.
constexpr const char* kOneUnit = R"([model]
kind = "decoder"
layers = 1
width = 84
norm = "rms"
last_norm = false
embedding_norm = true
qk_norm = "head"
qkv_bias = true
ffn = "moe"
ffn_width = 1
bias = true
scale_embedding = true
[model.attention]
heads = 7
kv_heads = 1
score = "additive"
score_width = 7
scale = 2.074984e-03
position = "learned"
[model.moe]
experts = 5
active = 3
expert = "relu"
router_correction = true
renormalise = false
routed_scale = 6.384488e+00
[data]
text = "text.txt"
tokenizer = "char"
context = 40)";

struct OnceAlarmed {
  const char* recipe;
  void (*check)(const Subject&, Report&);
  double label_smoothing = 0;
};

TEST(CheckExtremes, WhatRoundingDoesToTheseIsNoAlarm) {
  const cpu::SettingsScope restore;
  for (const auto& [text, check, smoothing] :
       {OnceAlarmed{kManyRoundings, check_passes}, OnceAlarmed{kOneChoice, check_definitions},
        OnceAlarmed{kThreeColumns, check_passes}, OnceAlarmed{kBent, check_differences},
        OnceAlarmed{kFlattened, check_passes}, OnceAlarmed{kSignOfOneColumn, check_passes},
        OnceAlarmed{kSmallGradients, check_passes, 0.2348948},
        OnceAlarmed{kNothingCounted, check_training}, OnceAlarmed{kOneUnit, check_definitions}}) {
    Subject subject = subject_of(reduced(recipe_of_text(text)));
    subject.label_smoothing = smoothing;
    Report report;
    check(subject, report);
    EXPECT_FALSE(report.cases.empty());
    EXPECT_TRUE(report.pass()) << text << "\n" << failures(report);
  }
}

// However the loss bends, a gradient that is off by a hundredth is.
TEST(CheckExtremes, AWrongGradientOfABentLossIsFoundByDifferences) {
  const cpu::SettingsScope restore;
  static GradientTable table;
  table = cpu::native_kernels<GradientTable>(cpu::available_isas().back());
  table.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
    cpu::AttentionBackwardArgs b = a;
    b.forward.scale *= 1.01;
    cpu::native_kernels<GradientTable>(cpu::current_isa()).backward(b);
  };
  const Subject subject = subject_of(reduced(recipe_of_text(kBent)));
  cpu::planted_kernels<GradientTable> = &table;
  Report report;
  check_differences(subject, report);
  cpu::planted_kernels<GradientTable> = nullptr;
  EXPECT_FALSE(report.pass());
}

}  // namespace
}  // namespace heddle::check
