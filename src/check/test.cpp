#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/settings.h"
#include "check/check.h"
#include "check/reduce.h"
#include "check/test_support.h"
#include "check/tolerance.h"
#include "check/values.h"
#include "ops/attention/attention.kernels.h"
#include "ops/norm/norm.kernels.h"
#include "run/recipe_file.h"

namespace heddle::check {
namespace {

recipe::Recipe recipe_of(const std::string& model, const std::string& data) {
  const std::string path = testing::TempDir() + "heddle_check_recipe.toml";
  std::ofstream(path) << "[model]\n"
                      << model << "\n[data]\n"
                      << data << "\n[train]\nsteps = 1\nbatch = 1\n";
  recipe::Recipe recipe = run::load_recipe(path);
  std::filesystem::remove(path);
  return recipe;
}

const std::string kText = "text = \"a.txt\"\ntokenizer = \"char\"\ncontext = 4096";

model::ModelConfig small_decoder() {
  model::ModelConfig m;
  m.layers = 1;
  m.width = 20;
  m.attention.heads = 2;
  m.attention.kv_heads = 1;
  m.attention.look_back = 5;
  m.attention.position = nn::RopePosition{};
  m.dropout = 0.1;
  m.sizes.vocabulary = 19;
  m.sizes.context = 17;
  return m;
}

TEST(CheckReduce, KeepsEveryChoiceAndShrinksTheNumbers) {
  const model::ModelConfig m = reduced(recipe_of(R"(
kind = "decoder"
layers = 32
width = 4200
norm = "rms"
norm_place = "post"
ffn = "swiglu"
ffn_width = 11009
bias = false
dropout = 0.1
[model.attention]
heads = 30
kv_heads = 10
look_back = 1000
position = "rope"
rope_width = 70
softcap = 3.0
sinks = true)",
                                                 kText));
  EXPECT_EQ(m.layers, 2);
  EXPECT_EQ(m.attention.heads / *m.attention.kv_heads, 3);
  EXPECT_FALSE(std::has_single_bit(static_cast<std::uint64_t>(m.attention.heads)));
  const std::int64_t head = m.width / m.attention.heads;
  EXPECT_EQ(head % 16, 140 % 16);
  EXPECT_LE(m.width, 400);
  EXPECT_EQ(m.ffn_width % 16, 11009 % 16);
  EXPECT_LT(m.ffn_width, 130);
  EXPECT_LT(*m.attention.look_back, m.sizes.context / 2);
  EXPECT_GT(*m.attention.look_back, 2);
  const auto& rope = std::get<nn::RopePosition>(m.attention.position);
  EXPECT_LT(rope.rotated, head);
  EXPECT_EQ(m.norm, nn::NormKind::rms);
  EXPECT_EQ(m.norm_place, nn::NormPlace::post);
  EXPECT_EQ(m.ffn, nn::FfnKind::swiglu);
  EXPECT_EQ(m.attention.softcap, 3);
  EXPECT_TRUE(m.attention.sinks);
  EXPECT_FALSE(m.bias);
  EXPECT_EQ(m.dropout, 0.1);
}

// Elements turn in pairs: of three at most two, whatever the width is cut to.
TEST(CheckReduce, APartOfAnOddHeadTurnsInPairs) {
  for (const std::string width : {"3", "5", "19", "35"}) {
    const model::ModelConfig m =
        reduced(recipe_of("kind = \"decoder\"\nlayers = 1\nwidth = " + width +
                              "\n[model.attention]\nposition = \"rope\"\nrope_width = 2",
                          kText));
    const auto& rope = std::get<nn::RopePosition>(m.attention.position);
    EXPECT_EQ(rope.rotated % 2, 0) << width;
    EXPECT_GE(rope.rotated, 2) << width;
    EXPECT_LT(rope.rotated, m.width) << width;
  }
}

TEST(CheckReduce, KeepsWhichStackIsDeeperAndHowManyVocabulariesThereAre) {
  const std::string model = "kind = \"rnn-seq2seq\"\nlayers = 2\ndecoder_layers = 5\nwidth = 300\n";
  const std::string data = "source = \"a\"\ntarget = \"b\"\ntokenizer = \"bpe:100\"\n";
  model::ModelConfig m = reduced(recipe_of(model, data));
  EXPECT_LT(m.layers, m.decoder_layers);
  EXPECT_EQ(m.sizes.target_vocabulary, 0);
  m = reduced(recipe_of(model, data + "target_tokenizer = \"bpe:200\""));
  EXPECT_GT(m.sizes.target_vocabulary, 0);
  EXPECT_NE(m.sizes.target_vocabulary, m.sizes.vocabulary);
}

// ALiBi's slopes follow another rule where the heads are no power of two.
TEST(CheckReduce, HeadsStayAPowerOfTwoOrNone) {
  struct Row {
    std::int64_t heads, kv_heads, left, left_kv;
  };
  for (const Row& r : {Row{3, 3, 3, 3},
                       {7, 7, 3, 3},
                       {5, 1, 5, 1},
                       {10, 5, 6, 3},
                       {12, 4, 9, 3},
                       {8, 8, 2, 2},
                       {16, 4, 8, 2},
                       {1, 1, 1, 1}}) {
    const model::ModelConfig m = reduced(
        recipe_of("kind = \"decoder\"\nlayers = 1\nwidth = " + std::to_string(16 * r.heads) +
                      "\n[model.attention]\nheads = " + std::to_string(r.heads) +
                      "\nkv_heads = " + std::to_string(r.kv_heads) + "\nposition = \"alibi\"",
                  kText));
    EXPECT_EQ(m.attention.heads, r.left) << "of " << r.heads;
    EXPECT_EQ(m.attention.key_heads(), r.left_kv) << "of " << r.heads << ", " << r.kv_heads;
  }
}

TEST(CheckReduce, EightExpertsAreEnoughUnlessMoreAreActive) {
  struct Row {
    std::int64_t experts, active, left;
  };
  for (const Row& r : {Row{64, 2, 8}, {64, 8, 8}, {64, 12, 12}, {5, 3, 5}, {12, 12, 12}}) {
    const model::ModelConfig m =
        reduced(recipe_of("kind = \"decoder\"\nlayers = 1\nwidth = 32\nffn = \"moe\"\n[model.moe]\n"
                          "experts = " +
                              std::to_string(r.experts) + "\nactive = " + std::to_string(r.active) +
                              "\n[model.attention]\nheads = 2",
                          kText));
    EXPECT_EQ(m.moe->experts, r.left) << "of " << r.experts;
    EXPECT_EQ(m.moe->active, r.active);
  }
}

// Of layers that differ one of each kind is left, with its own window and angles.
TEST(CheckReduce, LayersThatDifferStayDifferent) {
  const model::ModelConfig m = reduced(
      recipe_of("kind = \"decoder\"\nlayers = 30\nwidth = 256\n[model.attention]\nheads = 4\n"
                "position = \"rope\"\nrope_base = 1e6\n"
                "pattern = [\"near\", \"near\", \"far\", \"near\", \"blind\"]\n"
                "[model.attention.near]\nlook_back = 100\nrope_base = 100\n[model.attention.far]\n"
                "[model.attention.blind]\nposition = \"none\"",
                kText));
  EXPECT_EQ(m.layers, 3);
  ASSERT_EQ(m.attention_layers.size(), 3u);
  EXPECT_LT(*m.attention_layers[0].look_back, m.sizes.context / 2);
  EXPECT_EQ(std::get<nn::RopePosition>(m.attention_layers[0].position).base, 100);
  EXPECT_FALSE(m.attention_layers[1].look_back);
  EXPECT_EQ(std::get<nn::RopePosition>(m.attention_layers[1].position).base, 1e6);
  EXPECT_TRUE(std::holds_alternative<nn::NoPosition>(m.attention_layers[2].position));
  EXPECT_EQ(model::self_attentions(m, true).size(), 3u);
}

TEST(CheckReduce, RefusesWhatTrainingRefusesInTheRecipesNumbers) {
  try {
    reduced(recipe_of("kind = \"decoder\"\nlayers = 2\nwidth = 100\n[model.attention]\nheads = 7",
                      kText));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("width 100"), std::string::npos) << e.what();
  }
}

TEST(CheckValues, ErrorsAreRelativeAndNeverMissNans) {
  const Tensor want = Tensor::from<double>({2}, {3.0, 4.0});
  EXPECT_EQ(error_of(want, want), 0);
  const double size = std::sqrt(12.5);
  EXPECT_DOUBLE_EQ(error_of(Tensor::from<double>({2}, {3.0, 5.0}), want), 1 / (4 + size));
  EXPECT_DOUBLE_EQ(error_of(Tensor::from<double>({2}, {3.0, 5.0}), want, Measure::mean),
                   std::sqrt(0.5) / size);
  EXPECT_EQ(error_of(Tensor::from<double>({2}, {3.0, NAN}), want), INFINITY);
  EXPECT_EQ(error_of(Tensor::from<double>({1}, {3.0}), want), INFINITY);
  EXPECT_EQ(error_of(Tensor(), want), INFINITY);
  EXPECT_EQ(other_bits(Tensor::from<double>({2}, {3.0, 5.0}), want), 1);
  // A gradient that is there on one side only.
  EXPECT_EQ(differences_of({{"a", want}}, {{"a", Tensor()}}).front().largest, INFINITY);
}

TEST(Check, ASoundModelPassesAndSettingsAreAsBefore) {
  const cpu::Isa isa = cpu::current_isa();
  const int threads = cpu::thread_count();
  const Report report = check_model(small_decoder(), {.threads = {1, 2}, .label_smoothing = 0.1});
  EXPECT_TRUE(report.pass()) << failures(report);
  EXPECT_EQ(cpu::current_isa(), isa);
  EXPECT_EQ(cpu::thread_count(), threads);
  // All types and instruction sets are there.
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const cpu::Isa each : cpu::available_isas())
      EXPECT_EQ(std::ranges::count_if(report.cases,
                                      [&](const Case& c) {
                                        return c.path == "gradients" && c.dtype == dtype &&
                                               c.isa == cpu::to_string(each);
                                      }),
                2);
}

// Everything that layers and ends may choose, on every path.
TEST(Check, LayersThatDifferPass) {
  model::ModelConfig m = small_decoder();
  m.layers = 2;
  m.norm = nn::NormKind::rms;
  m.norm_place = nn::NormPlace::sandwich;
  m.qk_norm = nn::QkNorm::head;
  m.ffn = nn::FfnKind::geglu_tanh;
  m.logit_softcap = 4;
  m.logit_scale = 0.5;
  m.key_bias = false;
  nn::LayerAttention local = nn::layer_part(m.attention), global = local;
  local.position = nn::RopePosition{.base = 100};
  global.look_back = std::nullopt;
  m.attention_layers = {local, global};
  const Report report = check_model(m, {.threads = {1}});
  EXPECT_TRUE(report.pass()) << failures(report);
  // Each of the two is compared with its definition.
  EXPECT_EQ(std::ranges::count_if(report.cases,
                                  [](const Case& c) {
                                    return c.path == "attention, by definition" &&
                                           c.dtype == DType::f64;
                                  }),
            2 * static_cast<std::ptrdiff_t>(cpu::available_isas().size()));
}

// What the classifier reads is twice as wide where two vectors stand side by side.
TEST(Check, TheClassifierIsCheckedAtTheWidthThatItReads) {
  model::ModelConfig m = small_decoder();
  m.kind = model::Kind::vit;
  m.attention.look_back = std::nullopt;
  m.attention.position = nn::LearnedPosition{};
  m.patch = 4;
  m.task = model::Task::classify;
  m.sizes = {.classes = 5, .channels = 1, .height = 8, .width = 12};
  m.pooling = model::Pooling::class_mean;
  for (const auto transform : {model::HeadTransform::none, model::HeadTransform::gelu}) {
    m.head_transform = transform;
    const Report report = check_model(m, {.threads = {1}});
    EXPECT_TRUE(report.pass()) << failures(report);
    const auto cases = [&](const char* path) {
      return std::ranges::count_if(report.cases, [&](const Case& c) { return c.path == path; });
    };
    EXPECT_GT(cases("classifier, by definition"), 0);
    EXPECT_EQ(cases("classifier's first layer, by definition") > 0,
              transform == model::HeadTransform::gelu);
  }
}

// Differences between two points may fall over a jump of the derivative, wherever relu stands.
TEST(Check, ReluHasAKinkWhereverItStands) {
  model::ModelConfig m = small_decoder();
  m.ffn = nn::FfnKind::gelu;
  EXPECT_FALSE(has_kinks(m));
  m.head_transform = model::HeadTransform::relu;
  EXPECT_TRUE(has_kinks(m));
  m.head_transform = model::HeadTransform::gelu;
  EXPECT_FALSE(has_kinks(m));
  m.ffn = nn::FfnKind::relu;
  EXPECT_TRUE(has_kinks(m));
}

// A sum of relu may be nearly 0: in bf16 nothing that follows it is compared, on any path.
TEST(Check, WeightsByReluAreNotComparedInBf16) {
  model::ModelConfig m = small_decoder();
  m.attention.normaliser = ops::Normaliser::relu;
  const Report report = check_model(m, {.threads = {1}});
  EXPECT_TRUE(report.pass()) << failures(report);
  const auto cases = [&](const std::string& path, DType dtype) {
    return std::ranges::count_if(report.cases,
                                 [&](const Case& c) { return c.path == path && c.dtype == dtype; });
  };
  for (const char* path : {"logits", "gradients", "a batch in parts"}) {
    EXPECT_GT(cases(path, DType::f64), 0) << path;
    EXPECT_GT(cases(path, DType::f32), 0) << path;
    EXPECT_EQ(cases(path, DType::bf16), 0) << path;
  }
}

TEST(Check, PromptsAndDocumentsAreCheckedToo) {
  model::ModelConfig m = small_decoder();
  m.attention.prefix = true;
  const Report report = check_model(m, {.threads = {1, 2}, .documents = true});
  EXPECT_TRUE(report.pass()) << failures(report);
}

// A fault in one table; what the check says about it.
template <class K>
Report with_fault(void (*change)(K&), const model::ModelConfig& model = small_decoder(),
                  bool documents = false) {
  static K table;
  table = cpu::native_kernels<K>(cpu::available_isas().back());
  change(table);
  cpu::planted_kernels<K> = &table;
  const Report report = check_model(model, {.threads = {1, 2}, .documents = documents});
  cpu::planted_kernels<K> = nullptr;
  return report;
}

// The same with one in the table of the gradient as well.
template <class K, class G>
Report with_faults(void (*change)(K&), void (*change_gradient)(G&), const model::ModelConfig& model,
                   bool documents) {
  static G table;
  table = cpu::native_kernels<G>(cpu::available_isas().back());
  change_gradient(table);
  cpu::planted_kernels<G> = &table;
  const Report report = with_fault<K>(change, model, documents);
  cpu::planted_kernels<G> = nullptr;
  return report;
}

template <class K>
const K& sound() {
  return cpu::native_kernels<K>(cpu::current_isa());
}

bool finds(const Report& report, const std::string& path, DType dtype) {
  return std::ranges::any_of(
      report.cases, [&](const Case& c) { return !c.pass() && c.path == path && c.dtype == dtype; });
}

bool only(const Report& report, DType dtype) {
  return std::ranges::all_of(report.cases,
                             [&](const Case& c) { return c.pass() || c.dtype == dtype; });
}

// On every instruction set alike: only a definition and differences can tell.
TEST(Check, FindsANormWithTheWrongEpsilonByItsDefinition) {
  using K = cpu::NormKernels;
  const Report r = with_fault<K>([](K& k) {
    k.forward = [](const cpu::NormArgs& a) noexcept {
      cpu::NormArgs b = a;
      b.eps *= 1.5;
      sound<K>().forward(b);
    };
  });
  EXPECT_TRUE(finds(r, "norm, by definition", DType::f64));
  EXPECT_TRUE(finds(r, "norm, by definition", DType::f32));
}

TEST(Check, FindsAGradientWithAMissingTermByDifferences) {
  using K = cpu::NormGradientKernels;
  const Report r = with_fault<K>([](K& k) {
    k.backward = [](const cpu::NormBackwardArgs& a) noexcept {
      cpu::NormBackwardArgs b = a;
      b.dsum = nullptr;  // the residual stream
      sound<K>().backward(b);
    };
  });
  EXPECT_TRUE(finds(r, "gradients, by differences", DType::f64));
}

TEST(Check, FindsABiasThatOnlyOneTypeForgets) {
  using K = cpu::ProductKernels;
  const Report r = with_fault<K>([](K& k) {
    k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      if (t == DType::bf16) b.epilogue.bias = nullptr;
      sound<K>().run(t, b);
    };
  });
  EXPECT_TRUE(finds(r, "logits", DType::bf16));
  EXPECT_TRUE(finds(r, "generation, token by token", DType::bf16));
  EXPECT_TRUE(only(r, DType::bf16)) << failures(r);
}

TEST(Check, FindsAFaultOfOneInstructionSet) {
  using K = cpu::ProductKernels;
  const Report r = with_fault<K>([](K& k) {
    k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      if (cpu::current_isa() == cpu::Isa::generic && b.m > 3) --b.m;  // the last row
      sound<K>().run(t, b);
    };
  });
  EXPECT_FALSE(r.pass());
}

// Five parts in a hundred too much, of one branch and in one type.
TEST(Check, FindsABranchThatOnlyBf16Scales) {
  using K = cpu::AttentionKernels;
  const auto plant = [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      sound<K>().forward(a);
      if (a.dtype != DType::bf16) return;
      auto* y = static_cast<bf16*>(a.y);
      const cpu::AttentionShape& s = a.shape;
      for (std::int64_t i = 0; i < s.batch * s.queries * s.heads * s.value_width; ++i)
        y[i] = bf16::from_float(1.05f * y[i].to_float());
    };
  };
  for (const nn::FfnKind ffn : {nn::FfnKind::gelu, nn::FfnKind::relu}) {
    model::ModelConfig m = small_decoder();
    m.ffn = ffn;
    const Report r = with_fault<K>(plant, m);
    EXPECT_TRUE(finds(r, "attention, by definition", DType::bf16));
    EXPECT_TRUE(only(r, DType::bf16)) << failures(r);
  }
}

// The token before the first that may be seen. Without a window that is one of another document.
std::vector<std::int32_t> one_too_early(const cpu::AttentionArgs& a) {
  std::vector<std::int32_t> first(a.first_key, a.first_key + a.shape.batch * a.shape.queries);
  for (std::int32_t& key : first) key -= key > 0 ? 1 : 0;
  return first;
}

// In both directions and everywhere alike: differences agree, and so do all settings.
TEST(Check, FindsADocumentThatSeesTheOneBefore) {
  using K = cpu::AttentionKernels;
  const auto plant = [](K& k) {
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      const std::vector<std::int32_t> first = one_too_early(a);
      cpu::AttentionArgs b = a;
      b.first_key = first.data();
      sound<K>().forward(b);
    };
  };
  using G = cpu::AttentionGradientKernels;
  const auto plant_gradient = [](G& k) {
    k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
      const std::vector<std::int32_t> first = one_too_early(a.forward);
      cpu::AttentionBackwardArgs b = a;
      b.forward.first_key = first.data();
      sound<G>().backward(b);
    };
  };
  model::ModelConfig m = small_decoder();
  m.attention.look_back = std::nullopt;
  const Report r = with_faults<K, G>(plant, plant_gradient, m, true);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    EXPECT_TRUE(finds(r, "attention, by definition", dtype));
  EXPECT_FALSE(finds(r, "gradients, by differences", DType::f64));
  const Report alone = with_faults<K, G>(plant, plant_gradient, m, false);
  EXPECT_TRUE(alone.pass());  // one document: nothing to see
}

// A last bit that differs would be rounded to another bf16 now and then.
TEST(Check, EveryInstructionSetSeesTheSameNumbers) {
  const cpu::SettingsScope restore;
  const Shape shape{4000000};  // one in some hundred thousand would differ
  cpu::set_isa(cpu::Isa::generic);
  const auto expected = normal(shape, 1, 7, DType::f32).to_vector<float>();
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    EXPECT_TRUE(normal(shape, 1, 7, DType::f32).to_vector<float>() == expected)
        << cpu::to_string(isa);
  }
}

}  // namespace
}  // namespace heddle::check
