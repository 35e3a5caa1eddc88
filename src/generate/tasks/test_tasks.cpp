// Translation, labels of texts and images, tags: with small models of random weights.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "generate/inspect_model.h"
#include "generate/scores.h"
#include "generate/tasks/buckets.h"
#include "generate/tasks/image_size.h"
#include "generate/tasks/predict.h"
#include "generate/tasks/translate.h"
#include "heddle/error.h"
#include "heddle/ops.h"
#include "text/train.h"

namespace heddle::generate {
namespace {

using Texts = std::vector<std::string_view>;

constexpr std::string_view kWords = "a b c d e f g h";

std::shared_ptr<const text::Tokenizer> words() {
  text::TokenizerSpec spec;
  spec.kind = text::TokenizerSpec::Kind::word;
  spec.minimum_count = 1;
  const Texts texts = {kWords};
  return text::train_tokenizer(spec, texts,
                               {.pad = true, .begin = true, .end = true, .unknown = true});
}

struct Task {
  std::shared_ptr<const data::Codec> codec;
  std::unique_ptr<model::Model> model;
};

Task make(model::Kind kind, model::Task task, const auto& change) {
  data::CodecParts parts;
  parts.task = task;
  parts.length = 12;
  parts.source = words();
  if (task != model::Task::translate) parts.labels = {"no", "yes", "maybe"};
  model::ModelConfig c;
  c.kind = kind;
  c.task = task;
  c.layers = 2;
  c.width = 16;
  c.attention.heads = 2;
  change(c, parts);
  Task result;
  result.codec = std::make_shared<data::Codec>(std::move(parts));
  c.sizes = result.codec->sizes();
  result.model = model::build_model(c, {.seed = 4});
  return result;
}

Task translator(bool learned = false) {
  return make(model::Kind::encoder_decoder, model::Task::translate,
              [&](model::ModelConfig& c, data::CodecParts&) {
                if (learned) c.attention.position = nn::LearnedPosition{};
              });
}

// Images of 4 x 6 pixels in patches of 2.
Task image_task() {
  return make(model::Kind::vit, model::Task::classify,
              [](model::ModelConfig& c, data::CodecParts& parts) {
                parts.source = nullptr;
                parts.image = data::ImageFacts{1, 4, 6, {0.5f}, {0.25f}};
                c.patch = 2;
              });
}

TEST(Inspect, APatchIsNamedByItsRowAndColumn) {
  const Task task = image_task();
  InspectInput input;
  input.image = Tensor::full({1, 4, 6}, 80, DType::u8);
  input.image_name = "shoe.png";
  const Inspection seen = inspect(*task.model, *task.codec, input);
  EXPECT_EQ(seen.grid->rows, 2);
  EXPECT_EQ(seen.grid->columns, 3);
  EXPECT_EQ(seen.source, (std::vector<std::string>{"[class]", "row 1, column 1", "row 1, column 2",
                                                   "row 1, column 3", "row 2, column 1",
                                                   "row 2, column 2", "row 2, column 3"}));
}

// The message of an Error; empty if none is thrown.
std::string complaint_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Something to read for each task.
InspectInput input_for(const Task& task) {
  InspectInput input;
  if (task.codec->image()) {
    input.image = Tensor::full({1, 4, 6}, 80, DType::u8);
    return input;
  }
  input.prompt = "a b c d";
  if (task.codec->task() == model::Task::translate) input.target = "d c";
  return input;
}

// One bad number anywhere in a parameter that is read is told, by the parameter's name, and never
// shown as a map, a loss or a score. Every kind, every task, every parameter.
TEST(NotFinite, IsRefusedWithTheParameterThatIsToBlame) {
  using M = model::Kind;
  using T = model::Task;
  const auto plain = [](model::ModelConfig&, data::CodecParts&) {};
  const auto no_labels = [](model::ModelConfig& c, data::CodecParts& parts) {
    parts.labels = {};
    c.attention.position = nn::T5Position{8, 6};
    c.attention.sinks = true;
  };
  const auto prefix = [&](model::ModelConfig& c, data::CodecParts& parts) {
    no_labels(c, parts);
    c.attention.prefix = true;
  };
  std::vector<Task> tasks;
  tasks.push_back(make(M::decoder, T::language, no_labels));
  tasks.push_back(make(M::decoder, T::language, prefix));
  tasks.push_back(make(M::encoder, T::classify, plain));
  tasks.push_back(make(M::encoder, T::tag, plain));
  tasks.push_back(translator(true));
  tasks.push_back(image_task());
  for (const Task& task : tasks) {
    const InspectInput input = input_for(task);
    ASSERT_EQ(complaint_of([&] { inspect(*task.model, *task.codec, input); }), "");
    for (nn::Parameter& p : task.model->parameters().all()) {
      const Tensor kept = ops::clone(p.tensor.detach());
      for (const double bad : {std::nan(""), HUGE_VAL}) {
        ops::copy_into(p.tensor, Tensor::full(p.tensor.shape(), bad));
        const std::string blame = "parameter " + p.name + "; expected finite numbers";
        const std::string where = std::string(to_string(task.model->config().kind)) + " " + p.name;
        EXPECT_NE(complaint_of([&] { inspect(*task.model, *task.codec, input); }).find(blame),
                  std::string::npos)
            << where;
        const std::vector<std::int32_t> tokens = {4, 7, 5}, target = {1, 6};
        const ScoreRequest request{.tokens = tokens, .target = target};
        if (!task.codec->image()) {
          EXPECT_NE(complaint_of([&] { scores(*task.model, request, "test"); }).find(blame),
                    std::string::npos)
              << where;
        }
      }
      ops::copy_into(p.tensor, kept);
    }
    EXPECT_EQ(complaint_of([&] { inspect(*task.model, *task.codec, input); }), "");
  }
}

TEST(NotFinite, IsSeenInOneNumberOfManyAndInTheScores) {
  const Task task = make(model::Kind::decoder, model::Task::language,
                         [](model::ModelConfig&, data::CodecParts& parts) { parts.labels = {}; });
  nn::Parameter* table = nullptr;
  for (nn::Parameter& p : task.model->parameters().all())
    if (p.name == "embed.weight") table = &p;
  ASSERT_NE(table, nullptr);
  float& number = table->tensor.mutable_data<float>()[task.codec->encode_source("h")[0] * 16];
  const float kept = number;
  number = NAN;
  const auto said = [&](const char* text) {
    return complaint_of([&] { inspect(*task.model, *task.codec, {.prompt = text}); });
  };
  EXPECT_NE(said("a b h").find("parameter embed.weight;"), std::string::npos) << said("a b h");
  number = kept;
  EXPECT_EQ(said("a b h"), "");
  // Finite weights, and sums that are not.
  for (nn::Parameter& p : task.model->parameters().all())
    if (p.name == "head.weight") ops::copy_into(p.tensor, Tensor::full(p.tensor.shape(), 3e38));
  EXPECT_NE(said("a b h").find("loss of this input"), std::string::npos) << said("a b h");
  const std::vector<std::int32_t> tokens = {4, 5};
  EXPECT_NE(complaint_of([&] { scores(*task.model, {.tokens = tokens}, "x"); }).find("scores of"),
            std::string::npos);
}

TEST(Inspect, RefusesAPromptWithoutTokens) {
  const Task task = make(model::Kind::decoder, model::Task::language,
                         [](model::ModelConfig&, data::CodecParts& parts) { parts.labels = {}; });
  // Not white space in ASCII, and yet without a word.
  for (const char* blank : {"", " \n", "\u3000", "\u00a0"}) {
    try {
      inspect(*task.model, *task.codec, {.prompt = blank});
      ADD_FAILURE() << blank;
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), "prompt");
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    }
  }
  EXPECT_EQ(inspect(*task.model, *task.codec, {.prompt = "a"}).source.size(), 1u);
}

// Beyond its learned positions a model has no answer; beyond its context it has one to doubt.
TEST(Inspect, KnowsHowMuchWasLearned) {
  const auto task = [](const nn::Position& position) {
    return make(model::Kind::decoder, model::Task::language,
                [&](model::ModelConfig& c, data::CodecParts& parts) {
                  c.attention.position = position;
                  parts.labels = {};
                });
  };
  const std::string twelve = "a b c d e f g h a b c d", thirteen = twelve + " e";
  const Task rope = task(nn::RopePosition{}), learned = task(nn::LearnedPosition{});
  EXPECT_FALSE(inspect(*rope.model, *rope.codec, {.prompt = twelve}).learned);
  EXPECT_EQ(inspect(*rope.model, *rope.codec, {.prompt = thirteen}).learned, 12);
  EXPECT_FALSE(inspect(*learned.model, *learned.codec, {.prompt = twelve}).learned);
  try {
    inspect(*learned.model, *learned.codec, {.prompt = thirteen});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "prompt");
    EXPECT_EQ(e.expected(), "at most 12, the positions the model has learned");
    EXPECT_EQ(e.got(), "13");
  }
}

TEST(Translate, ManyTextsGiveWhatEachGivesAloneInTheirOrder) {
  const Task task = translator();
  const Texts texts = {"a b c", "", "d", "h g f e d c b a", " \t", "a a", "b c", "e f g h"};
  TranslationOptions o;
  o.beam.beam = o.beam.best = 3;
  o.batch = 3;
  std::size_t seen = 0, groups = 0;
  o.progress = [&](std::size_t done, std::size_t all) {
    ++groups;
    EXPECT_GT(done, seen);
    EXPECT_EQ(all, texts.size());
    seen = done;
  };
  const auto all = translate(*task.model, *task.codec, texts, o);
  EXPECT_EQ(seen, 6u);
  EXPECT_EQ(groups, 2u) << "six texts, three at a time";
  ASSERT_EQ(all.size(), texts.size());
  o.progress = {};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(i);
    const auto alone = translate(*task.model, *task.codec, Texts{texts[i]}, o).front();
    EXPECT_EQ(all[i].text, alone.text);
    ASSERT_EQ(all[i].best.size(), alone.best.size());
    for (std::size_t j = 0; j < alone.best.size(); ++j) {
      EXPECT_EQ(all[i].best[j].text, alone.best[j].text);
      EXPECT_NEAR(all[i].best[j].score, alone.best[j].score, 1e-5);
    }
    EXPECT_EQ(alone.best.empty(), i == 1 || i == 4);  // nothing in, nothing out
  }
}

TEST(Translate, HasAtMostTheTokensThatItsSourceAllows) {
  const Task task = translator();
  TranslationOptions o;
  o.longest_ratio = 1;
  o.longest_extra = 2;
  for (const auto& t : translate(*task.model, *task.codec, Texts{"a", "a b c d"}, o)) {
    const std::size_t end = t.best[0].finished ? 1 : 0;
    EXPECT_LE(t.best[0].tokens.size() + end, static_cast<std::size_t>(t.source_tokens + 2));
  }
}

TEST(Translate, NamesTheLineThatIsTooLong) {
  const Task task = translator(true);
  const Texts texts = {"a", "a b c d e f g h a b c d e"};  // 13 and the end; there are 13 positions
  try {
    translate(*task.model, *task.codec, texts, {});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "translate: line 2");
    EXPECT_EQ(e.got(), "14");
  }
  EXPECT_EQ(translate(*task.model, *task.codec, Texts{"a b c d e f g h a b c d"}, {}).size(), 1u);
}

TEST(Predict, TextsHaveTheLabelsThatTheModelGivesThem) {
  const Task task = make(model::Kind::encoder, model::Task::classify,
                         [](model::ModelConfig&, data::CodecParts&) {});
  const Texts texts = {"a b c", "", "d", "h g f e d c b a h g f e d c b a"};
  const auto all = classify_texts(*task.model, *task.codec, texts, {.batch = 2});
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(i);
    const auto alone = classify_texts(*task.model, *task.codec, Texts{texts[i]}).front();
    EXPECT_EQ(all[i].label, alone.label);
    EXPECT_NEAR(all[i].probability, alone.probability, 1e-5);
    EXPECT_EQ(all[i].cut, i == 3);
    if (i == 1) {
      EXPECT_EQ(all[i].id, -1);
      EXPECT_EQ(all[i].label, "");
      continue;
    }
    EXPECT_EQ(all[i].label, task.codec->label(all[i].id));
    double sum = 0;
    for (const double p : all[i].probabilities) {
      sum += p;
      EXPECT_LE(p, all[i].probability);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  // The text that is cut is the one from before.
  const auto beginning =
      classify_texts(*task.model, *task.codec, Texts{"h g f e d c b a h g f e"}).front();
  EXPECT_NEAR(beginning.probability, all[3].probability, 1e-5);
  EXPECT_FALSE(beginning.cut);
}

TEST(Predict, WordsHaveTags) {
  const Task task =
      make(model::Kind::encoder, model::Task::tag, [](model::ModelConfig&, data::CodecParts&) {});
  const std::vector<Words> sentences = {{"a", "b", "zebra"}, {}, {"d"}, {"a", "b", "zebra", "c"}};
  const auto all = tag_sentences(*task.model, *task.codec, sentences, {.batch = 2});
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    ASSERT_EQ(all[i].size(), sentences[i].size());
    const auto alone =
        tag_sentences(*task.model, *task.codec, std::vector<Words>{sentences[i]}).front();
    for (std::size_t j = 0; j < alone.size(); ++j) {
      EXPECT_EQ(all[i][j].label, alone[j].label);
      EXPECT_NEAR(all[i][j].probability, alone[j].probability, 1e-5);
    }
  }
}

TEST(Predict, ImagesHaveLabels) {
  const Task task = image_task();
  std::vector<Tensor> images;
  for (int i = 0; i < 5; ++i) images.push_back(Tensor::full({1, 4, 6}, 50.0 * i, DType::u8));
  const auto all = classify_images(*task.model, *task.codec, images, {.batch = 2});
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const auto alone = classify_images(*task.model, *task.codec, {&images[i], 1}).front();
    EXPECT_EQ(all[i].label, alone.label);
    EXPECT_NEAR(all[i].probability, alone.probability, 1e-5);
  }
  EXPECT_NE(all[0].probability, all[4].probability);
}

TEST(Predict, AnImageOfAnotherSizeIsNamed) {
  const data::ImageFacts learned{3, 28, 30, {}, {}};
  const auto of_size = [](const Shape& shape) {
    return NamedImage{"shoe.png", Tensor::full(shape, 1, DType::u8)};
  };
  check_size(of_size({3, 28, 30}), learned);
  check_size(of_size({1, 28, 30}), learned);
  for (const Shape& shape : {Shape{3, 30, 28}, Shape{2, 28, 30}}) try {
      check_size(of_size(shape), learned);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& e) {
      const std::string said = e.what();
      EXPECT_EQ(said.find("shoe.png: "), 0u) << said;
      EXPECT_NE(said.find("expected 30 × 28 pixels with 3 channels"), std::string::npos) << said;
      EXPECT_NE(said.find(shape[0] == 2 ? "got 30 × 28 pixels with 2 channels"
                                        : "got 28 × 30 pixels with 3 channels"),
                std::string::npos)
          << said;
    }
}

TEST(Predict, RefusesModelsOfOtherTasks) {
  const Task task = translator();
  EXPECT_THROW(classify_texts(*task.model, *task.codec, Texts{"a"}), Error);
  EXPECT_THROW(tag_sentences(*task.model, *task.codec, std::vector<Words>{{"a"}}), Error);
  const Task tagger =
      make(model::Kind::encoder, model::Task::tag, [](model::ModelConfig&, data::CodecParts&) {});
  EXPECT_THROW(translate(*tagger.model, *tagger.codec, Texts{"a"}, {}), Error);
  const std::vector<Tensor> images = {Tensor::full({1, 4, 4}, 1, DType::u8)};
  EXPECT_THROW(classify_images(*tagger.model, *tagger.codec, images), Error);
}

TEST(Buckets, TakeTheLongestFirstAndLeaveEmptyOnesOut) {
  const std::vector<std::size_t> lengths = {3, 0, 5, 1, 5, 100, 2};
  const auto all = buckets(lengths, {.sequences = 3, .tokens = 12});
  using Places = std::vector<std::size_t>;
  // 100 alone; two of 5 are 10 of 12; then 3, 2, 1.
  EXPECT_EQ(all, (std::vector<Places>{{5}, {2, 4}, {0, 6, 3}}));
  EXPECT_TRUE(buckets({}, {}).empty());
}

}  // namespace
}  // namespace heddle::generate
