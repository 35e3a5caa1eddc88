// Models of images as others write them, and what preprocessor_config.json may say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "heddle/classifier.h"
#include "heddle/embedder.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "model/model.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/random/random.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"
#include "pretrained/load.h"
#include "pretrained/names/names.h"
#include "pretrained/names/take.h"

namespace heddle::pretrained {
namespace {

using model::ModelConfig;
using model::Pooling;
using model::Task;

constexpr const char* kImageConfig = R"("hidden_size": 8, "num_hidden_layers": 2,
  "num_attention_heads": 2, "intermediate_size": 12, "image_size": 6, "patch_size": 3,
  "num_channels": 1, "id2label": {"0": "a", "1": "b", "2": "c"})";
constexpr const char* kImageSettings = R"({"do_resize": true, "size": {"height": 6, "width": 6},
  "resample": 2, "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
  "image_mean": [0.25], "image_std": [0.5], "image_processor_type": "ViTImageProcessor"})";

ModelConfig image_config(Pooling pooling, std::int64_t extra) {
  ModelConfig c;
  c.kind = model::Kind::vit;
  c.task = Task::classify;
  c.layers = 2;
  c.width = 8;
  c.ffn_width = 12;
  c.norm_epsilon = 1e-12;
  c.attention.heads = 2;
  c.attention.position = nn::LearnedPosition{};
  c.pooling = pooling;
  c.extra_tokens = extra;
  c.patch = 3;
  c.sizes = {.classes = 3, .channels = 1, .height = 6, .width = 6};
  return c;
}

class ImageModels : public ::testing::Test {
 protected:
  // A ViT or DeiT of Heddle's own in their files; `taught` has two classifiers.
  std::unique_ptr<model::Model> write(const std::string& type, const std::string& architecture,
                                      const ModelConfig& config) {
    model::BuildOptions options;
    options.seed = 3;
    auto model = model::build_model(config, options);
    const Family& family = pretrained::family(type, "test");
    std::vector<io::NamedTensor> all;
    for (const nn::Parameter& p : model->parameters().all()) add(family, p, config, all);
    std::filesystem::create_directories(path());
    io::write_safetensors(path() + "/model.safetensors", all);
    put("config.json", R"({"model_type": ")" + type + R"(", "architectures": [")" + architecture +
                           R"("], )" + kImageConfig + "}");
    put("preprocessor_config.json", kImageSettings);
    return model;
  }

  void put(const std::string& name, const std::string& text) {
    std::ofstream(path() + "/" + name) << text;
  }
  std::string path() const { return dir_.file("vit"); }

  static void add(const Family& family, const nn::Parameter& p, const ModelConfig& config,
                  std::vector<io::NamedTensor>& out) {
    const Tensor own = p.tensor.detach();
    const bool taught = config.pooling == Pooling::class_extra && p.name.starts_with("head.");
    if (taught) return add_two_heads(own, out);
    for (const TensorName& rule : family.names) {
      const auto theirs = rename(p.name, rule.ours, rule.theirs);
      if (!theirs) continue;
      const bool rows = rule.take == &as_rows;
      out.push_back({std::string(family.prefix) + *theirs,
                     rows ? ops::reshape(own, {1, own.size(0), own.size(1)}) : own});
      return;
    }
    FAIL() << p.name;
  }
  // Half of each counts: they are written twice as large.
  static void add_two_heads(const Tensor& own, std::vector<io::NamedTensor>& out) {
    const char* const names[] = {"cls_classifier.", "distillation_classifier."};
    for (std::int64_t i = 0; i < 2; ++i) {
      const std::string name = names[i];
      if (own.rank() == 2)
        out.push_back({name + "weight",
                       ops::scale(ops::contiguous(ops::slice(own, 1, 8 * i, 8 * i + 8)), 2)});
      else
        out.push_back({name + "bias", ops::scale(own, 1)});
    }
  }

  io::TempDir dir_;
};

std::vector<float> scores_of(const model::Model& model, const model::Batch& batch) {
  return model.logits(batch, {}).to_vector<float>();
}

model::Batch one_image(const data::Codec& codec) {
  std::vector<std::uint8_t> bytes(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(7 * i);
  const Tensor image = Tensor::from<std::uint8_t>({1, 6, 6}, bytes);
  return codec.batch_of_images(std::span(&image, 1));
}

TEST_F(ImageModels, HaveTheScoresOfTheSameModelByHand) {
  for (const bool taught : {false, true}) {
    const std::string type = taught ? "deit" : "vit";
    const auto own =
        write(type, taught ? "DeiTForImageClassificationWithTeacher" : "ViTForImageClassification",
              image_config(taught ? Pooling::class_extra : Pooling::class_token, taught ? 1 : 0));
    const Loaded loaded = load(path());
    EXPECT_EQ(loaded.codec->labels(), (std::vector<std::string>{"a", "b", "c"}));
    const model::Batch batch = one_image(*loaded.codec);
    // 7 / 255 → (x - 0.25) / 0.5
    EXPECT_FLOAT_EQ(batch.images.to_vector<float>()[1], (7.0F / 255.0F - 0.25F) / 0.5F);
    EXPECT_EQ(scores_of(*loaded.model, batch), scores_of(*own, batch)) << type;
  }
}

TEST_F(ImageModels, GiveVectorsOfTheirClassTokenAndOfPatches) {
  ModelConfig config = image_config(Pooling::class_token, 0);
  const auto own = write("vit", "ViTForImageClassification", config);
  put("config.json", R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], )" +
                         std::string(kImageConfig) + "}");
  const Embedder model(path());
  ASSERT_TRUE(model.reads_images());
  EXPECT_EQ(model.pool(), EmbeddingPool::class_token);
  const Tensor image = Tensor::full({1, 6, 6}, 9, DType::u8);
  const std::vector<NamedImage> images = {{"x.png", image}};
  const Tensor one = model.embed(std::span<const NamedImage>(images));
  EXPECT_EQ(one.shape(), (Shape{1, 8}));
  EXPECT_THROW((void)model.embed("text"), Error);
}

TEST_F(ImageModels, SettingsThatAreNotUnderstoodAreNamed) {
  (void)write("vit", "ViTForImageClassification", image_config(Pooling::class_token, 0));
  const std::map<std::string, std::string> bad = {
      {"crop_pct", R"({"crop_pct": 0.9, "image_mean": [0.5], "image_std": [0.5]})"},
      {"rescale_factor", R"({"rescale_factor": 0.5, "image_mean": [0.5], "image_std": [0.5]})"},
      {"do_rescale", R"({"do_rescale": false, "image_mean": [0.5], "image_std": [0.5]})"},
      {"image_mean", R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5]})"},
      {"image_std", R"({"image_mean": [0.5]})"},
      {"size", R"({"size": "seven", "image_mean": [0.5], "image_std": [0.5]})"},
      {"crop_size",
       R"({"do_center_crop": true, "crop_size": {"height": 6, "width": 9}, "image_mean": [0.5],
           "image_std": [0.5]})"}};
  for (const auto& [key, text] : bad) {
    put("preprocessor_config.json", text);
    try {
      (void)load(path());
      ADD_FAILURE() << key;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("preprocessor_config.json"), std::string::npos);
    }
  }
  put("preprocessor_config.json",
      R"({"size": 6, "crop_size": 6, "image_mean": [0.5], "image_std": [0.5]})");
  EXPECT_NO_THROW((void)load(path()));  // one number for both sides, as older files have it
  std::filesystem::remove(path() + "/preprocessor_config.json");
  try {
    (void)load(path());
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("preprocessor_config.json"), std::string::npos);
  }
}

TEST_F(ImageModels, PositionsAreInterpolatedWhereTheImageIsAnother) {
  ModelConfig c = image_config(Pooling::class_token, 0);  // 2 × 2 patches
  const Tensor table = Tensor::from<float>({1, 5, 1}, std::vector<float>{9, 0, 1, 2, 3});
  EXPECT_EQ(image_positions(table, c).to_vector<float>(), (std::vector<float>{9, 0, 1, 2, 3}));
  c.sizes.height = 3;  // 1 × 2: the middle of both rows, since the cubic is symmetric
  const auto middle = image_positions(table, c).to_vector<float>();
  ASSERT_EQ(middle.size(), 3U);
  EXPECT_FLOAT_EQ(middle[0], 9);
  EXPECT_FLOAT_EQ(middle[1], 1);
  EXPECT_FLOAT_EQ(middle[2], 2);
  c.sizes.height = c.sizes.width = 3 << 12;
  EXPECT_THROW((void)image_positions(table, c), Error);
}

}  // namespace
}  // namespace heddle::pretrained
