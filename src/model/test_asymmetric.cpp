// Mistakes that equal sides, equal depths and full sequences hide: rows taken for columns, one
// stack for the other, padding that counts.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

#include "model/parts/pool.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

TEST(Asymmetric, TheMeanOfAPaddedSequenceIsThatOfItsTokens) {
  ModelConfig c = small(Kind::encoder, Task::classify);
  c.pooling = Pooling::mean;
  const auto model = build_f64(c);
  const Pool pool(c, model->parameters().root());
  // [2, 3, 2]; the second sequence has one token, and padding that is far from it.
  const Tensor y =
      Tensor::from<double>({2, 3, 2}, {1, 10, 2, 20, 6, 60, 5, 7, 1000, -1000, 4000, 3000});
  const Tensor means = pool.reduce(y, lengths_of({3, 1}));
  EXPECT_EQ(means.shape(), (Shape{2, 2}));
  EXPECT_EQ(doubles(means), (Doubles{3, 30, 5, 7}));
  EXPECT_EQ(doubles(pool.reduce(y, lengths_of({2, 3}))),
            (Doubles{1.5, 15, 5005.0 / 3, 2007.0 / 3}));
  EXPECT_EQ(doubles(pool.reduce(y, {})), (Doubles{3, 30, 5005.0 / 3, 2007.0 / 3}));
}

// A label of a padded text is that of the text alone, however its vectors become one.
TEST(Asymmetric, LabelsOfPaddedTextsAreThoseOfTheTextsAlone) {
  for (const Pooling pooling : {Pooling::mean, Pooling::class_token}) {
    ModelConfig c = small(Kind::encoder, Task::classify);
    c.pooling = pooling;
    c.attention.position = nn::LearnedPosition{};
    const auto model = build_f64(c);
    Batch padded, alone;
    padded.tokens = Tensor::from<std::int32_t>({2, 5}, {3, 1, 4, 1, 5, 9, 2, 6, 6, 6});
    padded.lengths = lengths_of({5, 2});
    alone.tokens = Tensor::from<std::int32_t>({1, 2}, {9, 2});
    const NoGrad no_grad;
    const Tensor both = model->logits(padded, pass_f64());
    EXPECT_LE(distance(ops::slice(both, 0, 1, 2), model->logits(alone, pass_f64())), 1e-12);
  }
}

// Numbers of the layers under a stack's name.
std::set<std::string> layers_of(const Model& model, const std::string& stack) {
  std::set<std::string> numbers;
  const std::string before = stack + ".layers.";
  for (const nn::Parameter& p : model.parameters().all())
    if (p.name.rfind(before, 0) == 0)
      numbers.insert(p.name.substr(before.size(), p.name.find('.', before.size()) - before.size()));
  return numbers;
}

TEST(Asymmetric, EachStackHasItsOwnDepth) {
  for (const Kind kind : {Kind::encoder_decoder, Kind::rnn_seq2seq}) {
    ModelConfig c = small(kind, Task::translate);
    c.layers = 1;
    c.decoder_layers = 3;
    const auto shallow_reader = build_f64(c);
    EXPECT_EQ(c.layers_of_decoder(), 3);
    c.layers = 3;
    c.decoder_layers = 1;
    const auto deep_reader = build_f64(c);
    if (kind == Kind::encoder_decoder) {
      using Names = std::set<std::string>;
      EXPECT_EQ(layers_of(*shallow_reader, "encoder"), (Names{"0"}));
      EXPECT_EQ(layers_of(*shallow_reader, "decoder"), (Names{"0", "1", "2"}));
      EXPECT_EQ(layers_of(*deep_reader, "encoder"), (Names{"0", "1", "2"}));
      EXPECT_EQ(layers_of(*deep_reader, "decoder"), (Names{"0"}));
    }
    EXPECT_NE(shallow_reader->parameters().count(), deep_reader->parameters().count())
        << to_string(kind);
    for (Model* model : {shallow_reader.get(), deep_reader.get()})
      expect_gradient(*model, random_batch(c), pass_f64(), std::string(to_string(kind)));
  }
}

Tensor parameter_named(const Model& model, const std::string& name) {
  for (const nn::Parameter& p : model.parameters().all())
    if (p.name == name) return p.tensor;
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

// Layer i of the decoder begins with the end of layer i of the encoder, and those above the
// encoder's last with the end of that one. Nothing else of the encoder reaches the scores when the
// decoder does not look at it (the first half of `combine`) and only one bridge is open.
TEST(Asymmetric, AStateIsHandedToTheLayerBesideIt) {
  ModelConfig c = small(Kind::rnn_seq2seq, Task::translate);
  c.layers = 2;
  c.decoder_layers = 4;
  const Batch batch = random_batch(c);
  const NoGrad no_grad;
  for (int open = 0; open < 4; ++open) {
    const auto model = build_f64(c);
    Tensor combine = parameter_named(*model, "combine.weight");  // [C, 2C]
    for (std::int64_t row = 0; row < c.width; ++row)
      std::fill_n(combine.mutable_data<double>() + row * 2 * c.width, c.width, 0.0);
    for (int i = 0; i < 4; ++i) {
      Tensor bridge = parameter_named(*model, "bridge." + std::to_string(i) + ".weight");
      if (i != open) ops::scale_into(bridge, 0);
    }
    const Tensor before = model->logits(batch, pass_f64());
    // The last layer's bias moves its own states alone.
    Tensor bias = parameter_named(*model, "encoder.layers.1.forward.in.bias");
    bias.mutable_data<double>()[0] += 0.5;
    const double moved = distance(model->logits(batch, pass_f64()), before);
    if (open == 0)
      EXPECT_EQ(moved, 0);
    else
      EXPECT_GT(moved, 1e-6) << "bridge " << open;
  }
}

// Exchanges the contents of two patches of every image, by row and column of the grid.
void exchange(Tensor& images, std::int64_t side, std::array<std::int64_t, 2> a,
              std::array<std::int64_t, 2> b) {
  const std::int64_t height = images.size(2), width = images.size(3);
  float* pixels = images.mutable_data<float>();
  for (std::int64_t plane = 0; plane < images.size(0) * images.size(1); ++plane)
    for (std::int64_t y = 0; y < side; ++y)
      for (std::int64_t x = 0; x < side; ++x) {
        const auto at = [&](const std::array<std::int64_t, 2>& place) {
          return (plane * height + place[0] * side + y) * width + place[1] * side + x;
        };
        std::swap(pixels[at(a)], pixels[at(b)]);
      }
}

// Patches are numbered row by row: 4 x 6 pixels in patches of 2 are 2 rows of 3. Swapping two
// patches together with their positions (after the class token's) changes nothing.
TEST(Asymmetric, PatchesOfARectangleAreNumberedRowByRow) {
  ModelConfig c = small(Kind::vit, Task::classify);
  ASSERT_NE(c.sizes.height, c.sizes.width);
  c.attention.position = nn::LearnedPosition{};
  const NoGrad no_grad;
  const auto scores = [&](bool patches, std::vector<std::int64_t> rows) {
    const auto model = build_f64(c);
    Batch batch = random_batch(c);
    if (patches) exchange(batch.images, 2, {1, 0}, {0, 2});
    for (nn::Parameter& p : model->parameters().all()) {
      if (p.name != "position.weight" || rows.empty()) continue;
      EXPECT_EQ(p.tensor.size(0), 7);
      double* values = p.tensor.mutable_data<double>();
      std::swap_ranges(values + rows[0] * c.width, values + (rows[0] + 1) * c.width,
                       values + rows[1] * c.width);
    }
    return model->logits(batch, pass_f64());
  };
  const Tensor plain = scores(false, {});
  EXPECT_LE(distance(plain, scores(true, {1 + 3, 1 + 2})), 1e-12);
  // As if there were 3 rows of 2, or columns came first: the patches' numbers would be others.
  EXPECT_GT(distance(plain, scores(true, {1 + 2, 1 + 1})), 1e-6);
  EXPECT_GT(distance(plain, scores(true, {1 + 1, 1 + 4})), 1e-6);
  EXPECT_GT(distance(plain, scores(true, {})), 1e-6);
}

}  // namespace
}  // namespace heddle::model
