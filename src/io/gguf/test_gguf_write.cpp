#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "heddle/ops/copy.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_write.h"
#include "io/gguf/quantize.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

std::vector<float> normal_weights(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::uint8_t> quantized(BlockType type, const std::vector<float>& values) {
  const BlockFormat& format = format_of(type);
  std::vector<std::uint8_t> blocks(values.size() / format.weights * format.bytes);
  quantize(type, values, blocks);
  return blocks;
}

std::vector<float> there_and_back(BlockType type, const std::vector<float>& values) {
  std::vector<float> back(values.size());
  dequantize(type, quantized(type, values), back);
  return back;
}

// Root of the mean square of the error, relative to that of the values.
double relative_error(const std::vector<float>& values, const std::vector<float>& back) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{values[i]} - back[i], 2);
    size += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / size);
}

Tensor as_tensor(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from<float>(shape, std::span<const float>(values));
}

std::vector<float> ramp(float from, float step, std::size_t count = 32) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from + step * static_cast<float>(i);
  return values;
}

TEST(GgufQuantize, Q8_0ByHand) {
  std::vector<float> values(32);
  values[0] = -127;
  values[1] = 63.5f;  // halves go away from zero
  values[2] = -0.5f;
  values[31] = 0.49f;
  const auto block = quantized(BlockType::q8_0, values);
  EXPECT_EQ(block[0] | block[1] << 8, 0x3c00);  // 127 / 127
  EXPECT_EQ(static_cast<std::int8_t>(block[2]), -127);
  EXPECT_EQ(block[3], 64);
  EXPECT_EQ(static_cast<std::int8_t>(block[4]), -1);
  EXPECT_EQ(block[33], 0);
}

TEST(GgufQuantize, Q4_0ByHand) {
  std::vector<float> values(32);
  values[0] = 8;  // the largest becomes -8 of a scale of -1
  values[16] = -7;
  values[1] = 0.5f;
  const auto block = quantized(BlockType::q4_0, values);
  EXPECT_EQ(block[0] | block[1] << 8, 0xbc00);
  EXPECT_EQ(block[2], 0xf0);  // -7 is 15 - 8 steps of -1, in the upper half
  EXPECT_EQ(block[3], 0x88);  // 0.5 is -0.5 steps; 8.5 - 0.5 is 8
  const auto zeros = quantized(BlockType::q4_0, std::vector<float>(32));
  EXPECT_EQ(zeros[1], 0x80);  // a scale of -0, as the reference has it
  EXPECT_EQ(zeros[2], 0x88);
}

TEST(GgufQuantize, Q4_1ByHand) {
  std::vector<float> values(32, -1);
  values[0] = 14;
  values[16] = 1.5f;
  const auto block = quantized(BlockType::q4_1, values);
  EXPECT_EQ(block[0] | block[1] << 8, 0x3c00);  // (14 + 1) / 15
  EXPECT_EQ(block[2] | block[3] << 8, 0xbc00);  // -1
  EXPECT_EQ(block[4], 0x3f);                    // 2.5 + 0.5 in the upper half
  EXPECT_EQ(block[5], 0x00);
}

// Values that are exactly those of some block come back as they were.
TEST(GgufQuantize, ValuesOfABlockComeBackExactly) {
  const auto steps = [](std::size_t count, auto value) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value(i);
    return values;
  };
  const auto q4_k = steps(256, [](std::size_t i) {
    const auto group = static_cast<float>(i / 32 == 0 ? 63 : 40 + i / 32);
    const auto offset = static_cast<float>(i / 32 == 1 ? 63 : 30 + i / 32);
    return 0.25f * group * static_cast<float>(i % 16) - 0.5f * offset;
  });
  EXPECT_EQ(there_and_back(BlockType::q4_k, q4_k), q4_k);
  const auto q6_k = steps(256, [](std::size_t i) {
    const auto group = static_cast<float>(i < 16 ? -128 : static_cast<int>(i / 16) * 7 - 50);
    const auto q = static_cast<float>(i % 16 == 0 ? -32 : static_cast<int>(i * 5 % 61) - 30);
    return 0.125f * group * q;
  });
  EXPECT_EQ(there_and_back(BlockType::q6_k, q6_k), q6_k);
  for (const BlockType type : {BlockType::q8_0, BlockType::q4_0, BlockType::q4_1, BlockType::q4_k,
                               BlockType::q6_k, BlockType::f16, BlockType::bf16, BlockType::f32}) {
    const std::vector<float> zeros(256);
    EXPECT_EQ(there_and_back(type, zeros), zeros) << format_of(type).name;
  }
}

// Bounds a little above what was measured: 0.0699 and 0.0172 of a normal distribution, and what
// groups of equal weights and of positive ones cost.
TEST(GgufQuantize, SearchFindsSmallErrors) {
  const std::vector<float> values = normal_weights(std::size_t{256} * 64);
  EXPECT_LT(relative_error(values, there_and_back(BlockType::q4_k, values)), 0.0715);
  EXPECT_LT(relative_error(values, there_and_back(BlockType::q6_k, values)), 0.0176);
  std::vector<float> positive = values;
  for (float& value : positive) value = std::abs(value);
  EXPECT_LT(relative_error(positive, there_and_back(BlockType::q4_k, positive)), 0.0435);
  for (const float constant : {3.0f, -3.0f, 0.5f}) {
    const std::vector<float> same(256, constant);
    EXPECT_LT(relative_error(same, there_and_back(BlockType::q4_k, same)), 2e-3) << constant;
    EXPECT_LT(relative_error(same, there_and_back(BlockType::q6_k, same)), 2e-3) << constant;
  }
}

// Magnitudes that differ from group to group do not spoil the small ones much.
TEST(GgufQuantize, GroupsKeepTheirOwnScales) {
  std::vector<float> values = normal_weights(std::size_t{256} * 16, 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= i / 32 % 8 == 0 ? 1.0f : 0.1f;
  const auto small_only = [&](std::vector<float> all) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i / 32 % 8 == 0) all[i] = 0;
    return all;
  };
  for (const auto& [type, bound] : {std::pair{BlockType::q4_k, 0.085}, {BlockType::q6_k, 0.025}})
    EXPECT_LT(relative_error(small_only(values), small_only(there_and_back(type, values))), bound)
        << format_of(type).name;
}

TEST(GgufQuantize, AnyMagnitudeIsHeldOrRefused) {
  for (const BlockType type :
       {BlockType::q8_0, BlockType::q4_0, BlockType::q4_1, BlockType::q4_k, BlockType::q6_k}) {
    for (int exponent = -149; exponent <= 127; ++exponent) {
      std::vector<float> values = normal_weights(256, 3);
      const float scale = std::ldexp(1.0f, exponent);
      for (float& value : values) value *= scale;
      if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) continue;
      try {
        for (const float back : there_and_back(type, values)) ASSERT_TRUE(std::isfinite(back));
        EXPECT_LT(exponent, 30) << format_of(type).name;
      } catch (const Error& e) {
        EXPECT_GT(exponent, 14) << e.what();
      }
    }
  }
}

std::string quantize_message(BlockType type, std::vector<float> values, std::size_t bytes) {
  std::vector<std::uint8_t> blocks(bytes);
  try {
    quantize(type, values, blocks, 1000);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(GgufQuantize, RefusesWhatATypeCannotHold) {
  const auto has = [](const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  };
  std::vector<float> values(256);
  values[200] = std::nanf("");
  has(quantize_message(BlockType::q4_k, values, 144), {"weight 1200", "Q4_K", "finite"});
  has(quantize_message(BlockType::q8_0, values, 272), {"weight 1200", "Q8_0", "finite"});
  EXPECT_EQ(quantize_message(BlockType::bf16, values, 512), "nothing was thrown");
  values[200] = -1e9f;
  for (const BlockType type :
       {BlockType::q8_0, BlockType::q4_0, BlockType::q4_1, BlockType::q4_k, BlockType::q6_k})
    has(quantize_message(type, values, 256 / format_of(type).weights * format_of(type).bytes),
        {"weight 1200", "a smaller one", "-1"});
  has(quantize_message(BlockType::f16, {1e5f}, 2), {"weight 1000", "F16", "a smaller one"});
  has(quantize_message(BlockType::bf16, {3.4e38f}, 2), {"weight 1000", "BF16"});
  EXPECT_EQ(quantize_message(BlockType::f16, {std::numeric_limits<float>::infinity()}, 2),
            "nothing was thrown");
  has(quantize_message(BlockType::q5_0, std::vector<float>(32), 22),
      {"does not write", "F32, F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, BF16", "Q5_0 (6)"});
  has(quantize_message(BlockType::q4_0, std::vector<float>(31), 18), {"18 bytes for every 32"});
  has(quantize_message(BlockType::q4_0, std::vector<float>(32), 19), {"18 bytes for every 32"});
}

GgufMetadata every_type_of_value() {
  GgufMetadata metadata;
  metadata.add("general.architecture", std::string("llama"));
  metadata.add("u8", std::uint8_t{1});
  metadata.add("i8", std::int8_t{-1});
  metadata.add("u16", std::uint16_t{2});
  metadata.add("i16", std::int16_t{-2});
  metadata.add("u32", std::uint32_t{3});
  metadata.add("i32", std::int32_t{-3});
  metadata.add("f32", 0.5f);
  metadata.add("bool", true);
  metadata.add("u64", std::uint64_t{1} << 63);
  metadata.add("i64", std::int64_t{-4});
  metadata.add("f64", 0.25);
  metadata.add("tokens", GgufArray(std::vector<std::string>{"a", "", "größe"}));
  metadata.add("flags", GgufArray(std::vector<bool>{true, false, true}));
  metadata.add("types", GgufArray(std::vector<std::int32_t>{1, -1}));
  metadata.add("scores", GgufArray(std::vector<float>{0.5f}));
  metadata.add("empty", GgufArray(std::vector<double>{}));
  return metadata;
}

TEST(GgufWrite, RoundTripOfValuesAndTensors) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  const GgufMetadata metadata = every_type_of_value();
  const std::vector<float> values = normal_weights(512);
  std::vector<GgufTensorPlan> plan;
  for (const BlockFormat& format : kBlockFormats)
    if (can_quantize(format.type))
      plan.push_back({"w." + std::string(format.name), format.type, {2, 256}});
  plan.push_back({"scalar", BlockType::f32, {}});
  plan.push_back({"none", BlockType::f16, {0, 3}});
  plan.push_back({"deep", BlockType::bf16, {2, 1, 3, 1}});
  EXPECT_EQ(plan.size(), 11u);
  GgufWriter writer(path, plan, metadata);
  for (std::size_t i = 0; i + 3 < plan.size(); ++i) writer.write(as_tensor({2, 256}, values));
  writer.write(Tensor::scalar(7));
  writer.write(Tensor::zeros({0, 3}));
  writer.write(as_tensor({2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  const GgufFile file(path);
  auto expected = metadata.entries();
  expected.emplace_back("general.quantization_version", std::uint32_t{2});
  EXPECT_EQ(file.metadata().entries(), expected);
  for (const GgufTensorPlan& planned : plan) {
    const GgufTensor& tensor = file.tensor(planned.name);
    EXPECT_EQ(tensor.type, planned.type);
    EXPECT_EQ(Shape(tensor.shape), planned.shape);
    EXPECT_EQ(tensor.offset % 32, 0u);
    if (!planned.name.starts_with("w.")) continue;
    EXPECT_EQ(file.load(planned.name).to_vector<float>(), there_and_back(planned.type, values))
        << planned.name;
  }
  EXPECT_EQ(file.load("w.F32").to_vector<float>(), values);
  EXPECT_EQ(file.load("scalar").item(), 7);
  EXPECT_EQ(file.load("deep").to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(GgufWrite, BytesAreThoseOfTheFormat) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  GgufMetadata metadata;
  metadata.add("general.alignment", std::uint32_t{8});
  GgufWriter writer(path, {{"a", BlockType::f32, {1, 3}}, {"b", BlockType::f16, {2}}}, metadata);
  writer.write(as_tensor({1, 3}, {1, -2, 0}));
  writer.write(as_tensor({2}, {1, -2}));
  writer.commit();
  const auto word = [](std::uint64_t value, std::size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  const std::string header = "GGUF" + word(3, 4) + word(2, 8) + word(1, 8) + word(17, 8) +
                             "general.alignment" + word(4, 4) + word(8, 4) +  //
                             word(1, 8) + "a" + word(2, 4) + word(3, 8) + word(1, 8) + word(0, 4) +
                             word(0, 8) +  //
                             word(1, 8) + "b" + word(1, 4) + word(2, 8) + word(1, 4) + word(16, 8);
  const std::string padding((8 - header.size() % 8) % 8, '\0');
  EXPECT_EQ(slurp(path), header + padding + word(0x3f800000, 4) + word(0xc0000000, 4) + word(0, 4) +
                             word(0, 4) + word(0xc0003c00, 4) + word(0, 4));
}

TEST(GgufWrite, TakesOtherTypesAndAnyStrides) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  const Tensor x = as_tensor({32, 2}, ramp(-8, 0.25f, 64));
  const Tensor turned = views::transpose(x, 0, 1);  // [2, 32]
  const std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16, DType::f64};
  std::vector<GgufTensorPlan> plan;
  for (const DType dtype : dtypes)
    plan.push_back({std::string(to_string(dtype)), BlockType::q8_0, {2, 32}});
  GgufWriter writer(path, plan);
  for (const DType dtype : dtypes) writer.write(ops::cast(turned, dtype));
  writer.commit();
  const auto expected = there_and_back(BlockType::q8_0, ops::contiguous(turned).to_vector<float>());
  const GgufFile file(path);
  for (const GgufTensorPlan& planned : plan)
    EXPECT_EQ(file.load(planned.name).to_vector<float>(), expected) << planned.name;
}

// More than one piece, and pieces that several threads share.
TEST(GgufWrite, LargeTensorsAreWrittenInPieces) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  const Shape shape{1100, 1024};
  std::vector<float> values(1100 * 1024);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  GgufWriter writer(path, {{"w", BlockType::q4_1, shape}});
  writer.write(as_tensor(shape, values));
  writer.commit();
  EXPECT_EQ(GgufFile(path).load("w").to_vector<float>(), there_and_back(BlockType::q4_1, values));
}

TEST(GgufWrite, KeepsToItsPlan) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  GgufWriter writer(path, {{"x", BlockType::f32, {2, 3}}});
  expect_refusal([&] { writer.commit(); }, {path, "too few", "expected 1; got 0"});
  expect_refusal([&] { writer.write(Tensor()); }, {"\"x\"", "undefined"});
  expect_refusal([&] { writer.write(Tensor::zeros({3, 2})); }, {"\"x\"", "[2, 3]", "[3, 2]"});
  expect_refusal([&] { writer.write(Tensor::zeros({2, 3}, DType::i32)); }, {"\"x\"", "i32"});
  expect_refusal([&] { writer.write(Tensor::zeros({2, 3}, DType::f32, Device::meta)); }, {"meta"});
  writer.write(Tensor::zeros({2, 3}));
  expect_refusal([&] { writer.write(Tensor::zeros({2, 3})); }, {"more tensors than were planned"});
  writer.commit();
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(GgufWrite, WeightsThatCannotBeHeldAreRefusedByName) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  {
    std::vector<float> values(64);
    values[40] = std::numeric_limits<float>::infinity();
    GgufWriter writer(path, {{"x", BlockType::q8_0, {2, 32}}});
    expect_refusal([&] { writer.write(as_tensor({2, 32}, values)); },
                   {path, "tensor \"x\": weight 40", "Q8_0", "a finite one"});
    expect_refusal([&] { writer.write(Tensor::zeros({2, 32})); }, {"cannot go on"});
    expect_refusal([&] { writer.commit(); }, {"too few"});
  }
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(GgufWrite, RefusesPlansThatTheFormatCannotHold) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf");
  const auto refused = [&](std::vector<GgufTensorPlan> plan,
                           std::initializer_list<std::string_view> parts) {
    expect_refusal([&] { const GgufWriter writer(path, std::move(plan)); }, parts);
  };
  refused({{"a", BlockType::f32, {1}}, {"a", BlockType::f32, {1}}}, {path, "\"a\" twice"});
  refused({{"", BlockType::f32, {1}}}, {"1 to 63 bytes"});
  refused({{std::string(64, 'a'), BlockType::f32, {1}}}, {"1 to 63 bytes"});
  refused({{"\xff", BlockType::f32, {1}}}, {"UTF-8"});
  refused({{"a", BlockType::q4_k, {256, 255}}}, {"\"a\"", "multiple of 256", "Q4_K", "255"});
  refused({{"a", BlockType::q5_k, {256}}}, {"\"a\"", "does not write", "Q5_K (13)"});
  refused({{"a", static_cast<BlockType>(99), {256}}}, {"\"a\"", "does not write", "99"});
  refused({{"a", BlockType::f32, {1, 1, 1, 1, 1}}}, {"\"a\"", "at most 4"});
  const std::int64_t big = std::int64_t{1} << 61;
  refused({{"a", BlockType::f32, {big}}}, {"\"a\"", "2^63"});
  refused({{"a", BlockType::f16, {big}}, {"b", BlockType::f16, {big}}}, {"2^62"});
  const auto refused_value = [&](const std::string& key, const GgufValue& value,
                                 std::initializer_list<std::string_view> parts) {
    GgufMetadata metadata;
    metadata.add(key, value);
    expect_refusal([&] { const GgufWriter writer(path, {}, metadata); }, parts);
  };
  refused_value("", true, {"1 to 65535 bytes"});
  refused_value("\xff", true, {"UTF-8"});
  refused_value("a", GgufArray(NoArray{}), {"\"a\"", "array of arrays"});
  refused_value("general.alignment", std::uint32_t{3}, {"general.alignment", "power of two"});
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace heddle::io
