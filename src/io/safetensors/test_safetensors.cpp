#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "heddle/memory.h"
#include "heddle/ops/copy.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

std::string with_length(const std::string& header, std::uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xff);
  return out + header;
}

std::string file_bytes(const std::string& header, std::size_t data) {
  return with_length(header, header.size()) + std::string(data, '\1');
}

Tensor counted(const Shape& shape, DType dtype) {
  const auto n = static_cast<std::size_t>(elements_of(shape));
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 100) / 2;
  return ops::cast(Tensor::from<float>(shape, std::span<const float>(values)), dtype);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

std::vector<NamedTensor> one_of_each_type() {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    tensors.push_back(
        {std::string("z.") + std::string(to_string(dtype)), counted({3, i + 1}, dtype)});
  }
  tensors.push_back({"scalar", Tensor::scalar(4)});
  tensors.push_back({"empty", Tensor::zeros({0, 5})});
  tensors.push_back({"größe \"x\"", counted({2}, DType::u8)});
  return tensors;
}

TEST(Safetensors, RoundTripOfEveryType) {
  const TempDir dir;
  const std::string path = dir.file("m.safetensors");
  const auto tensors = one_of_each_type();
  const Metadata metadata = {{"format", "pt"}, {"note", "a \"quoted\"\nline"}};
  write_safetensors(path, tensors, metadata);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const NamedTensor& t : tensors) {
    EXPECT_TRUE(file.contains(t.name));
    EXPECT_EQ(file.entry(t.name).known_dtype(), t.tensor.dtype());
    EXPECT_TRUE(same_bytes(file.load(t.name), t.tensor)) << t.name;
    Tensor there = Tensor::zeros(t.tensor.shape(), t.tensor.dtype());
    file.load_into(t.name, there);
    EXPECT_TRUE(same_bytes(there, t.tensor)) << t.name;
  }
}

TEST(Safetensors, BytesAreThoseOfTheFormat) {
  const TempDir dir;
  const std::string path = dir.file("m.safetensors");
  write_safetensors(path,
                    {{"b", Tensor::from<float>({1, 2}, {1, -2})},
                     {"a", Tensor::from<std::uint8_t>({3}, {7, 8, 9})}},
                    {{"k", "v"}});
  std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,2],)"
                       R"("data_offsets":[0,8]},"a":{"dtype":"U8","shape":[3],)"
                       R"("data_offsets":[8,11]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string expected =
      with_length(header, header.size()) + std::string("\0\0\x80\x3f\0\0\0\xc0\7\10\11", 11);
  EXPECT_EQ(slurp(path), expected);
}

TEST(Safetensors, WritesViewsInRowMajorOrder) {
  const TempDir dir;
  const std::string path = dir.file("m.safetensors");
  const Tensor x = counted({3, 4}, DType::bf16);
  write_safetensors(path, {{"t", views::transpose(x, 0, 1)},
                           {"s", views::slice(x, 1, 0, 4, 2)},
                           {"b", views::broadcast(counted({1, 2}, DType::i64), {5, 2})}});
  const SafetensorsFile file(path);
  EXPECT_TRUE(same_bytes(file.load("t"), ops::contiguous(views::transpose(x, 0, 1))));
  EXPECT_TRUE(same_bytes(file.load("s"), ops::contiguous(views::slice(x, 1, 0, 4, 2))));
  EXPECT_EQ(file.load("b").shape(), (Shape{5, 2}));
}

TEST(Safetensors, WriterTakesNoSecondCopyAndKeepsToItsPlan) {
  const TempDir dir;
  const std::string path = dir.file("m.safetensors");
  const Tensor x = counted({1000, 100}, DType::f32);
  reset_peak_memory(Device::cpu);
  const std::int64_t before = memory_use(Device::cpu).peak;
  SafetensorsWriter writer(path, {{"x", DType::f32, {1000, 100}}, {"y", DType::u8, {1}}});
  writer.write(x);
  EXPECT_EQ(memory_use(Device::cpu).peak, before);
  expect_refusal([&] { writer.commit(); }, {path, "too few", "expected 2; got 1"});
  expect_refusal([&] { writer.write(Tensor::zeros({1})); }, {"\"y\"", "u8 [1]", "f32 [1]"});
  expect_refusal([&] { writer.write(Tensor()); }, {"\"y\"", "undefined"});
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.write(Tensor::zeros({1}, DType::u8));
  expect_refusal([&] { writer.write(x); }, {"more tensors than were planned"});
  writer.commit();
  EXPECT_TRUE(same_bytes(SafetensorsFile(path).load("x"), x));
}

TEST(Safetensors, WriterRefusesNamesTheFormatCannotHold) {
  const TempDir dir;
  const std::string path = dir.file("m");
  const Tensor x = Tensor::zeros({1});
  expect_refusal([&] { write_safetensors(path, {{"a", x}, {"a", x}}); }, {path, "\"a\"", "differ"});
  expect_refusal([&] { write_safetensors(path, {{"__metadata__", x}}); }, {"__metadata__"});
  expect_refusal([&] { write_safetensors(path, {{"\xff", x}}); }, {"UTF-8"});
  expect_refusal([&] { write_safetensors(path, {{"a", x}}, {{"k", "\xff"}}); }, {"UTF-8"});
  expect_refusal([&] { write_safetensors(path, {{"a", Tensor()}}); }, {"\"a\" is undefined"});
  expect_refusal(
      [&] { write_safetensors(path, {{"a", Tensor::zeros({1}, DType::f32, Device::meta)}}); },
      {"\"a\"", "on meta"});
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(Safetensors, NamesTensorsThatAreNotThereOrDoNotFit) {
  const TempDir dir;
  const std::string path = dir.file("m");
  write_safetensors(path, {{"layer.0.weight", Tensor::zeros({2, 3})}});
  const SafetensorsFile file(path);
  EXPECT_FALSE(file.contains("layer.1.weight"));
  expect_refusal([&] { file.load("layer.1.weight"); },
                 {path, "no tensor \"layer.1.weight\"", "\"layer.0.weight\""});
  Tensor wrong = Tensor::zeros({3, 2});
  expect_refusal([&] { file.load_into("layer.0.weight", wrong); }, {"[3, 2]", "[2, 3]"});
  Tensor half = Tensor::zeros({2, 3}, DType::bf16);
  expect_refusal([&] { file.load_into("layer.0.weight", half); }, {"bf16", "f32"});
}

TEST(Safetensors, OtherTypesAreRefusedOnlyWhenAskedFor) {
  const TempDir dir;
  const SafetensorsFile file(dir.file(
      "m", file_bytes(R"({"e":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                      R"("f":{"dtype":"F4","shape":[2],"data_offsets":[2,3]},)"
                      R"("u":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},)"
                      R"("r":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[4,5]}})",
                      5)));
  EXPECT_EQ(file.load("u").item(), 1);
  expect_refusal([&] { file.load("e"); }, {"\"e\"", "F8_E4M3"});
  expect_refusal([&] { file.load("f"); }, {"\"f\"", "got F4"});
  expect_refusal([&] { file.load("r"); }, {"\"r\"", "at most 8", "got 9"});
}

TEST(Safetensors, AFileThatShrinksIsAnError) {
  const TempDir dir;
  const std::string path = dir.file("m");
  write_safetensors(path, {{"x", Tensor::zeros({100})}});
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, 200);
  expect_refusal([&] { file.load("x"); }, {path, "\"x\"", "shorter"});
}

struct Hostile {
  const char* what;
  std::string bytes;
  std::vector<std::string_view> parts;
};

std::string entry(const std::string& body, std::size_t data = 8) {
  return file_bytes("{\"a\":" + body + "}", data);
}

// The frame and the JSON of the header.
std::vector<Hostile> hostile_frames() {
  return {
      {"empty file", "", {"at least 8 bytes", "got 0"}},
      {"seven bytes", "1234567", {"at least 8 bytes"}},
      {"length 0", with_length("", 0), {"offset 0", "got 0"}},
      {"length 1", with_length("{", 1), {"offset 0"}},
      {"length beyond the file", with_length("{}", 3), {"2 to 2 bytes", "got 3"}},
      {"length 2^63", with_length("{}", 1ull << 63), {"offset 0", "9223372036854775808"}},
      {"length of all ones", with_length("{}", ~0ull), {"18446744073709551615"}},
      {"length beyond the format's limit", with_length("{}", 100'000'001), {"offset 0"}},
      {"an array", file_bytes("[]", 0), {"offset 8", "a JSON object"}},
      {"a blank first", file_bytes(" {}", 0), {"offset 8"}},
      {"text", file_bytes("hello", 0), {"offset 8", "\"hello\""}},
      {"cut JSON", file_bytes("{\"a\":", 0), {"header:1:6"}},
      {"two documents", file_bytes("{}{}", 0), {"header:1:3"}},
      {"bytes after {}", file_bytes("{}", 1), {"left over", "offset 10", "got 11"}},
      {"zeros as padding", file_bytes(std::string("{}\0\0", 4), 0), {"header:1:3"}},
      {"not UTF-8", file_bytes("{\"\xff\":1}", 0), {"UTF-8"}},
      {"deep", file_bytes("{\"a\":" + std::string(5000, '['), 0), {"too deeply"}},
      {"name twice",
       file_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                  R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                  2),
       {"\"a\" comes twice"}},
      {"metadata is a list", file_bytes(R"({"__metadata__":[]})", 0), {"__metadata__", "object"}},
      {"metadata is null", file_bytes(R"({"__metadata__":null})", 0), {"__metadata__", "object"}},
      {"metadata of a number", file_bytes(R"({"__metadata__":{"k":1}})", 0), {"__metadata__.k"}},
  };
}

// One entry.
std::vector<Hostile> hostile_entries() {
  std::string ones;
  for (int i = 0; i < 99; ++i) ones += ",1";
  return {
      {"entry is a number", entry("3"), {"key a; expected an object"}},
      {"no dtype", entry(R"({"shape":[8],"data_offsets":[0,8]})"), {"a.dtype is missing"}},
      {"no shape", entry(R"({"dtype":"U8","data_offsets":[0,8]})"), {"a.shape is missing"}},
      {"no offsets", entry(R"({"dtype":"U8","shape":[8]})"), {"a.data_offsets is missing"}},
      {"another key",
       entry(R"({"dtype":"U8","shape":[8],"data_offsets":[0,8],"scale":2})"),
       {"a.scale"}},
      {"dtype twice",
       entry(R"({"dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8]})"),
       {"comes twice"}},
      {"dtype is a number",
       entry(R"({"dtype":8,"shape":[8],"data_offsets":[0,8]})"),
       {"a.dtype; expected a string"}},
      {"unknown dtype",
       entry(R"({"dtype":"F33","shape":[8],"data_offsets":[0,8]})"),
       {"a.dtype", "\"F33\""}},
      {"dtype in small letters",
       entry(R"({"dtype":"u8","shape":[8],"data_offsets":[0,8]})"),
       {"a.dtype"}},
      {"shape is a number", entry(R"({"dtype":"U8","shape":8,"data_offsets":[0,8]})"), {"a.shape"}},
      {"negative size",
       entry(R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})"),
       {"a.shape[0]", "-8"}},
      {"two negative sizes",
       entry(R"({"dtype":"U8","shape":[-2,-4],"data_offsets":[0,8]})"),
       {"a.shape[0]"}},
      {"size with fraction",
       entry(R"({"dtype":"U8","shape":[8.0],"data_offsets":[0,8]})"),
       {"a.shape[0]"}},
      {"size of 2^64",
       entry(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,8]})"),
       {"a.shape[0]"}},
      {"product overflows",
       entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
       {"a.shape", "64 bits"}},
      {"product overflows to the right size",
       entry(R"({"dtype":"U8","shape":[2305843009213693953,8],"data_offsets":[0,8]})"),
       {"a.shape", "64 bits"}},
      {"100 sizes",
       entry(R"({"dtype":"U8","shape":[8)" + ones + R"(],"data_offsets":[0,8]})"),
       {"a.shape", "64 sizes"}},
      {"part of a byte",
       entry(R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})", 2),
       {"whole number of bytes"}},
      {"shape too small",
       entry(R"({"dtype":"U8","shape":[7],"data_offsets":[0,8]})"),
       {"\"a\"", "7 bytes", "8 by its offsets"}},
      {"shape too large",
       entry(R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})"),
       {"16 bytes"}},
  };
}

// Where entries lie.
std::vector<Hostile> hostile_offsets() {
  const auto pair = [](const char* first, const char* second, std::size_t data) {
    return file_bytes(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
                          R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                      data);
  };
  const auto offsets = [](const std::string& text) {
    return entry(R"({"dtype":"U8","shape":[8],"data_offsets":)" + text + "}");
  };
  return {
      {"one offset", offsets("[0]"), {"a.data_offsets"}},
      {"three offsets", offsets("[0,8,8]"), {"a.data_offsets"}},
      {"offsets are an object", offsets("{}"), {"a.data_offsets"}},
      {"negative offset", offsets("[-8,0]"), {"a.data_offsets[0]"}},
      {"end before begin", offsets("[8,0]"), {"a.data_offsets[1]"}},
      {"end beyond the file", offsets("[0,9]"), {"ends before its tensor \"a\"", "cut short"}},
      {"begin beyond the file", offsets("[9,17]"), {"ends before its tensor \"a\""}},
      {"end of 2^63", offsets("[0,9223372036854775808]"), {"a.data_offsets[1]"}},
      {"end of 2^64 - 1",
       offsets("[18446744073709551607,18446744073709551615]"),
       {"a.data_offsets[0]"}},
      {"gap at the start", entry(R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})"), {"gap"}},
      {"gap between", pair("[0,4]", "[5,9]", 9), {"\"b\"", "gap"}},
      {"overlap", pair("[0,4]", "[3,7]", 7), {"\"b\"", "overlaps"}},
      {"the same bytes twice", pair("[0,4]", "[0,4]", 4), {"overlaps"}},
      {"left over bytes", pair("[0,4]", "[4,8]", 9), {"left over"}},
      {"missing bytes", pair("[0,4]", "[4,8]", 7), {"ends before its tensor \"b\""}},
  };
}

TEST(Safetensors, RefusesHostileFiles) {
  const TempDir dir;
  std::size_t cases = 0;
  for (const auto& table : {hostile_frames(), hostile_entries(), hostile_offsets()}) {
    for (const Hostile& hostile : table) {
      const std::string path = dir.file("m", hostile.bytes);
      const std::string message = refusal([&] { SafetensorsFile{path}; });
      EXPECT_TRUE(message.starts_with(path)) << hostile.what << ": " << message;
      for (const std::string_view part : hostile.parts)
        EXPECT_NE(message.find(part), std::string::npos)
            << hostile.what << ": no " << part << " in: " << message;
      ++cases;
    }
  }
  EXPECT_GE(cases, 50u);
  expect_refusal([&] { SafetensorsFile(dir.path()); }, {"not a regular file"});
  expect_refusal([&] { SafetensorsFile(dir.file("none")); }, {"No such file"});
}

TEST(Safetensors, TakesWhatTheFormatAllows) {
  const TempDir dir;
  EXPECT_TRUE(SafetensorsFile(dir.file("m", file_bytes("{}", 0))).entries().empty());
  EXPECT_TRUE(SafetensorsFile(dir.file("m", file_bytes("{}    ", 0))).entries().empty());
  // Out of order in the header, and an empty one between.
  const SafetensorsFile file(
      dir.file("m", file_bytes(R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},)"
                               R"("e":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]},)"
                               R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                               8)));
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.entries()[2].name, "b");
  EXPECT_EQ(file.load("e").shape(), (Shape{3, 0}));
}

RC_GTEST_PROP(Safetensors, RoundTripOfRandomShapes, ()) {
  const TempDir dir;
  std::vector<NamedTensor> tensors;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    Shape shape;
    const int rank = *rc::gen::inRange(0, 5);
    for (int d = 0; d < rank; ++d) shape.push_back(*rc::gen::inRange(0, 5));
    tensors.push_back(
        {std::to_string(i), counted(shape, static_cast<DType>(*rc::gen::inRange(0, kDTypeCount)))});
  }
  write_safetensors(dir.file("m"), tensors);
  const SafetensorsFile file(dir.file("m"));
  for (const NamedTensor& t : tensors) RC_ASSERT(same_bytes(file.load(t.name), t.tensor));
}

TEST(Safetensors, SurvivesMutations) {
  const TempDir dir;
  write_safetensors(dir.file("valid"), one_of_each_type(), {{"a", "b"}});
  MemoryFile memory;
  const int refused =
      survive_mutations(slurp(dir.file("valid")), 3000, [&](const std::string& bytes) {
        const SafetensorsFile file(memory.hold(bytes));
        for (const TensorEntry& e : file.entries()) (void)file.load(e.name);
      });
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace heddle::io
