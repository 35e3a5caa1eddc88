#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "io/files/memory_limit.h"
#include "io/gguf/gguf.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

// A file put together by hand, so that the reader is not judged by the writer.
class HandFile {
 public:
  HandFile(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    bytes = "GGUF";
    number(version).number(tensors).number(keys);
  }

  template <class T>
  HandFile& number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  HandFile& text(std::string_view value) {
    number<std::uint64_t>(value.size());
    bytes += value;
    return *this;
  }
  template <class T>
  HandFile& key(std::string_view name, std::uint32_t type, T value) {
    return text(name).number(type).number(value);
  }
  HandFile& key(std::string_view name, std::string_view value) {
    return text(name).number<std::uint32_t>(8).text(value);
  }
  HandFile& array(std::string_view name, std::uint32_t type, std::uint64_t count) {
    return text(name).number<std::uint32_t>(9).number(type).number(count);
  }
  HandFile& tensor(std::string_view name, std::initializer_list<std::int64_t> sizes,
                   std::uint32_t type, std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(sizes.size()));
    for (const std::int64_t size : sizes) number(size);
    return number(type).number(offset);
  }
  HandFile& data(std::size_t count, std::size_t alignment = 32) {
    bytes.append((alignment - bytes.size() % alignment) % alignment, '\0');
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 7);
    return *this;
  }

  std::string bytes;
};

// Every type of value, three tensors.
std::string small_gguf() {
  HandFile file(3, 17);
  file.key<std::uint8_t>("u8", 0, 255).key<std::int8_t>("i8", 1, -128);
  file.key<std::uint16_t>("u16", 2, 65535).key<std::int16_t>("i16", 3, -32768);
  file.key<std::uint32_t>("u32", 4, 4294967295).key<std::int32_t>("i32", 5, -7);
  file.key<float>("f32", 6, 0.5f).key<std::uint8_t>("bool", 7, 1).key("text", "größe");
  file.key<std::uint64_t>("u64", 10, std::uint64_t{1} << 63).key<std::int64_t>("i64", 11, -1);
  file.key<double>("f64", 12, 1e-5);
  file.array("tokens", 8, 3).text("a").text("").text("ccc");
  file.array("heads", 5, 2).number<std::int32_t>(4).number<std::int32_t>(-8);
  file.array("flags", 7, 2).number<std::uint8_t>(1).number<std::uint8_t>(0);
  file.array("scores", 6, 2).number(1.5f).number(-2.0f);
  file.array("none", 10, 0);
  file.tensor("w", {4, 3}, 0, 0).tensor("q", {32, 2}, 8, 64).tensor("scalar", {}, 1, 160);
  return file.data(162).bytes;
}

std::string gguf_message(const std::string& bytes) {
  MemoryFile file;
  const std::string path = file.hold(bytes);
  return refusal([&] { const GgufFile opened(path); });
}

void expect_gguf_refusal(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  MemoryFile file;
  const std::string path = file.hold(bytes);
  expect_refusal([&] { const GgufFile opened(path); }, parts);
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  const TempDir dir;
  const GgufFile file(dir.file("m.gguf", small_gguf()));
  const GgufMetadata& m = file.metadata();
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(m.integer("u8"), 255);
  EXPECT_EQ(m.integer("i8"), -128);
  EXPECT_EQ(m.integer("u16"), 65535);
  EXPECT_EQ(m.integer("i16"), -32768);
  EXPECT_EQ(m.integer("u32"), 4294967295);
  EXPECT_EQ(m.integer("i32"), -7);
  EXPECT_EQ(m.integer("i64"), -1);
  EXPECT_EQ(m.number("f32"), 0.5);
  EXPECT_EQ(m.number("f64"), 1e-5);
  EXPECT_EQ(m.number("u64"), 0x1p63);
  EXPECT_TRUE(m.boolean("bool"));
  EXPECT_EQ(m.string("text"), "größe");
  EXPECT_EQ(m.strings("tokens"), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(m.integers("heads"), (std::vector<std::int64_t>{4, -8}));
  EXPECT_EQ(m.numbers("heads"), (std::vector<double>{4, -8}));
  EXPECT_EQ(m.numbers("scores"), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(m.integers("none"), std::vector<std::int64_t>{});
  EXPECT_EQ(std::get<std::vector<bool>>(std::get<GgufArray>(m.value("flags"))),
            (std::vector<bool>{true, false}));
  EXPECT_TRUE(m.is_array("heads"));
  EXPECT_FALSE(m.is_array("u8"));
  EXPECT_FALSE(m.is_array("absent"));
  EXPECT_EQ(m.keys().size(), 17u);
  EXPECT_EQ(m.keys()[8], "text");
}

TEST(Gguf, FallbacksAreForKeysThatAreNotThereOnly) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf", small_gguf());
  const GgufMetadata m = GgufFile(path).metadata();
  EXPECT_FALSE(m.has("absent"));
  EXPECT_EQ(m.integer_or("absent", 3), 3);
  EXPECT_EQ(m.integer_or("i32", 3), -7);
  EXPECT_EQ(m.number_or("absent", 0.25), 0.25);
  EXPECT_EQ(m.number_or("f32", 0.25), 0.5);
  EXPECT_EQ(m.string_or("absent", "x"), "x");
  EXPECT_EQ(m.string_or("text", "x"), "größe");
  EXPECT_TRUE(m.boolean_or("absent", true));
  EXPECT_TRUE(m.boolean_or("bool", false));
  expect_refusal([&] { m.integer_or("text", 3); }, {path, "key \"text\"", "an integer", "größe"});
}

TEST(Gguf, GettersNameTheKeyAndBothSides) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf", small_gguf());
  const GgufMetadata m = GgufFile(path).metadata();
  expect_refusal([&] { m.integer("token"); },
                 {path, "key \"token\" is missing", "a key \"tokens\""});
  expect_refusal([&] { m.integer("u8", 0, 100); }, {"\"u8\"", "from 0 to 100", "255 (u8)"});
  expect_refusal([&] { m.integer("i32", 0); }, {"\"i32\"", "from 0 to", "-7 (i32)"});
  expect_refusal([&] { m.integer("u64"); }, {"\"u64\"", "9223372036854775808 (u64)"});
  expect_refusal([&] { m.integer("f32"); }, {"an integer", "0.5"});
  expect_refusal([&] { m.integer("bool"); }, {"an integer", "true"});
  expect_refusal([&] { m.number("text"); }, {"a number", "größe"});
  expect_refusal([&] { m.boolean("u8"); }, {"true or false", "255"});
  expect_refusal([&] { m.string("heads"); }, {"a string", "an array of 2 of i32"});
  expect_refusal([&] { m.strings("heads"); }, {"an array of strings", "an array of 2 of i32"});
  expect_refusal([&] { m.strings("text"); }, {"an array of strings", "größe"});
  expect_refusal([&] { m.integers("scores"); }, {"an array of integers", "2 of f32"});
  expect_refusal([&] { m.numbers("tokens"); }, {"an array of numbers", "3 of string"});
  expect_refusal([&] { m.integers("flags"); }, {"an array of integers", "2 of bool"});
  GgufMetadata own;
  own.add("a", GgufArray(std::vector<std::uint64_t>{1, std::uint64_t{1} << 63}));
  expect_refusal([&] { own.integers("a"); }, {"\"a\"", "below 2^63"});
  expect_refusal([&] { own.add("a", true); }, {"\"a\" comes twice"});
}

TEST(Gguf, TensorsAreRowMajorAndDecoded) {
  const TempDir dir;
  const std::string bytes = small_gguf();
  const std::string path = dir.file("m.gguf", bytes);
  const GgufFile file(path);
  const std::uint64_t data = bytes.size() - 162;
  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor& q = file.tensor("q");
  EXPECT_EQ(q.shape, (std::vector<std::int64_t>{2, 32}));
  EXPECT_EQ(q.type, BlockType::q8_0);
  EXPECT_EQ(q.offset, data + 64);
  EXPECT_EQ(q.bytes, 68u);
  EXPECT_EQ(file.bytes(q).size(), 68u);
  EXPECT_EQ(file.bytes(q)[0], 64 % 7);
  EXPECT_EQ(file.tensor("w").shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(file.load("w").shape(), (Shape{3, 4}));
  float first = 0;
  std::memcpy(&first, bytes.data() + data, 4);
  EXPECT_EQ(file.load("w").data<float>()[0], first);
  EXPECT_EQ(file.load("scalar").rank(), 0);
  // A row alone is the same as that row of the whole.
  const Tensor whole = file.load("q");
  std::vector<float> row(32);
  file.read_rows(q, 1, row);
  EXPECT_EQ(std::memcmp(row.data(), whole.data<float>() + 32, 32 * sizeof(float)), 0);
  file.read_rows(q, 2, {});

  EXPECT_FALSE(file.contains("p"));
  expect_refusal([&] { file.load("scalor"); },
                 {path, "no tensor \"scalor\"", "\"scalar\" among 3"});
  for (const std::int64_t wrong : {std::int64_t{2}, std::int64_t{-1}, std::int64_t{1} << 62})
    expect_refusal([&] { file.read_rows(q, wrong, row); }, {"\"q\"", "whole rows of 32 among 2"});
  row.resize(33);
  expect_refusal([&] { file.read_rows(q, 0, row); }, {"33 weights from row 0"});
}

TEST(Gguf, TensorsOfManyPiecesAreDecodedWhole) {
  HandFile hand(1, 0);
  hand.tensor("w", {1000, 500}, 24, 0).data(500000);
  const TempDir dir;
  const GgufFile file(dir.file("m.gguf", hand.bytes));
  const Tensor w = file.load("w");
  for (std::int64_t i = 0; i < w.elements(); ++i)
    ASSERT_EQ(w.data<float>()[i], static_cast<float>(i % 7)) << i;
}

TEST(Gguf, VersionTwoAndAnotherAlignment) {
  HandFile hand(1, 1, 2);
  hand.key<std::uint32_t>("general.alignment", 4, 8).tensor("w", {2}, 0, 8).data(16, 8);
  const TempDir dir;
  const GgufFile file(dir.file("m.gguf", hand.bytes));
  EXPECT_EQ(file.version(), 2u);
  EXPECT_EQ(file.tensor("w").offset, hand.bytes.size() - 8);
}

TEST(Gguf, NoTensorsNeedNoData) {
  MemoryFile file;
  EXPECT_TRUE(GgufFile(file.hold(HandFile(0, 0).bytes)).tensors().empty());
}

TEST(Gguf, RefusesOtherFiles) {
  const TempDir dir;
  expect_refusal([&] { const GgufFile f(dir.file("absent")); }, {"absent"});
  expect_refusal([&] { const GgufFile f(dir.path()); }, {"directory"});
  expect_gguf_refusal("", {"ends inside of the first four bytes"});
  expect_gguf_refusal("PK\3\4", {"not a GGUF file", "\"GGUF\"", "PK\\x03"});
  expect_gguf_refusal("tjggxxxx", {"not a GGUF file", "came before GGUF"});
  expect_gguf_refusal(HandFile(0, 0, 1).bytes, {"version", "2 or 3", "1, whose sizes"});
  expect_gguf_refusal(HandFile(0, 0, 4).bytes, {"version", "2 or 3", "got 4"});
  expect_gguf_refusal(HandFile(0, 0, 0).bytes, {"version", "got 0"});
  expect_gguf_refusal(HandFile(0, 0, 0x03000000).bytes, {"big-endian"});
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  const auto huge = std::numeric_limits<std::uint64_t>::max();
  expect_gguf_refusal(HandFile(huge, 0).bytes, {"list of tensors at offset 8", "at most 0"});
  expect_gguf_refusal(HandFile(0, huge).bytes, {"list of keys at offset 16", "at most 0"});
  expect_gguf_refusal(HandFile(0, 1).number(huge).data(64).bytes, {"a key at offset 24"});
  expect_gguf_refusal(HandFile(0, 1).array("a", 12, huge / 8).data(64).bytes,
                      {"the value of key \"a\"", std::to_string(huge / 8)});
  expect_gguf_refusal(HandFile(0, 1).array("a", 8, 100).data(64).bytes, {"at most 9"});
  expect_gguf_refusal(HandFile(0, 1).text("a").number<std::uint32_t>(8).number(huge).bytes,
                      {"the length of the value of key \"a\" at offset 37"});
  const PretendMemory little(4096);
  expect_gguf_refusal(HandFile(0, 1).array("a", 0, 2000).data(2000).bytes,
                      {"too large", "a quarter of the memory"});
}

TEST(Gguf, RefusesValuesThatAreNone) {
  expect_gguf_refusal(HandFile(0, 1).key<std::uint8_t>("a", 13, 0).bytes,
                      {"type of the value of key \"a\" at offset 33", "0 to 12", "got 13"});
  expect_gguf_refusal(HandFile(0, 1).key<std::uint8_t>("a", 7, 2).bytes, {"\"a\"", "0 or 1", "2"});
  expect_gguf_refusal(HandFile(0, 1).array("a", 9, 0).data(8).bytes,
                      {"\"a\"", "no array of arrays"});
  expect_gguf_refusal(HandFile(0, 1).array("a", 99, 0).data(8).bytes, {"elements of", "got 99"});
  expect_gguf_refusal(HandFile(0, 1).key<std::uint64_t>("", 10, 0).bytes, {"a key", "1 to 65535"});
  expect_gguf_refusal(HandFile(0, 1).key<std::uint8_t>(std::string(65536, 'a'), 0, 0).bytes,
                      {"a key", "65536"});
  expect_gguf_refusal(HandFile(0, 1).key<std::uint8_t>("\xff", 0, 0).bytes, {"UTF-8", "\\xff"});
  expect_gguf_refusal(
      HandFile(0, 2).key<std::uint8_t>("a", 0, 0).key<std::uint8_t>("a", 0, 0).bytes,
      {"\"a\" comes twice"});
  for (const std::uint32_t alignment : {0u, 3u, 33u})
    expect_gguf_refusal(HandFile(0, 1).key("general.alignment", 4, alignment).bytes,
                        {"general.alignment", "a power of two", std::to_string(alignment)});
  expect_gguf_refusal(HandFile(0, 1).key("general.alignment", "32").bytes,
                      {"an integer", "\"32\""});
}

TEST(Gguf, RefusesPartsOfAModelAndSaysWhatToDo) {
  expect_gguf_refusal(HandFile(0, 1).key<std::uint16_t>("split.count", 2, 3).bytes,
                      {"split", "--merge", "one of 3 parts"});
  EXPECT_EQ(gguf_message(HandFile(0, 1).key<std::uint16_t>("split.count", 2, 1).bytes),
            "nothing was thrown");
}

TEST(Gguf, RefusesTensorsThatCannotBe) {
  const auto one = [](std::initializer_list<std::int64_t> sizes, std::uint32_t type,
                      std::uint64_t offset) {
    return HandFile(1, 0).tensor("w", sizes, type, offset).data(64).bytes;
  };
  expect_gguf_refusal(one({1, 1, 1, 1, 1}, 0, 0), {"dimensions of tensor \"w\"", "at most 4", "5"});
  expect_gguf_refusal(one({-1}, 0, 0), {"a size of tensor \"w\" at offset 37", "-1"});
  const std::int64_t big = std::int64_t{1} << 31;
  expect_gguf_refusal(one({big, big}, 0, 0), {"shape of tensor \"w\"", "2^60"});
  expect_gguf_refusal(one({big, big, 0}, 0, 0), {"2^60"});
  expect_gguf_refusal(one({31}, 2, 0), {"rows of tensor \"w\"", "multiple of 32", "Q4_0", "31"});
  expect_gguf_refusal(one({1}, 4, 0), {"type of tensor \"w\" at offset 45", "Q4_2 (4)"});
  expect_gguf_refusal(one({1}, 1000, 0), {"type of tensor \"w\"", "1000"});
  expect_gguf_refusal(one({1}, 0, 16), {"offset of tensor \"w\"", "multiple of 32", "16"});
  expect_gguf_refusal(one({17}, 0, 0), {"ends before its tensor \"w\"", "68 bytes", "cut short"});
  expect_gguf_refusal(one({1}, 0, 64), {"ends before its tensor \"w\""});
  expect_gguf_refusal(one({1}, 0, ~std::uint64_t{31}), {"ends before its tensor \"w\""});
  EXPECT_EQ(gguf_message(one({16}, 0, 0)), "nothing was thrown");
  EXPECT_EQ(gguf_message(one({0}, 0, 64)), "nothing was thrown");

  const auto two = [](const char* name, std::uint64_t offset) {
    return HandFile(2, 0).tensor("b", {9}, 0, 0).tensor(name, {1}, 0, offset).data(128).bytes;
  };
  expect_gguf_refusal(two("b", 64), {"\"b\" comes twice"});
  expect_gguf_refusal(two("a", 32), {"\"a\" overlaps tensor \"b\""});
  expect_gguf_refusal(two("a", 0), {"overlaps"});
  EXPECT_EQ(gguf_message(two("a", 64)), "nothing was thrown");
}

TEST(Gguf, OtherTypesAreRefusedOnlyWhenAskedFor) {
  HandFile hand(2, 0);
  hand.tensor("i", {256}, 16, 0).tensor("f", {1}, 0, 96).data(100);
  const TempDir dir;
  const GgufFile file(dir.file("m.gguf", hand.bytes));
  EXPECT_EQ(file.bytes(file.tensor("i")).size(), 66u);
  EXPECT_EQ(file.load("f").elements(), 1);
  expect_refusal([&] { file.load("i"); }, {"tensor \"i\"", "Q4_K", "IQ2_XXS (16)"});
}

TEST(Gguf, FileThatBecomesShorterIsAnError) {
  const TempDir dir;
  const std::string path = dir.file("m.gguf", small_gguf());
  const GgufFile file(path);
  std::filesystem::resize_file(path, 10);
  expect_refusal([&] { file.load("w"); }, {path, "became shorter"});
}

// Opens a damaged file and reads all that it says it has.
void use_gguf(const std::string& path) {
  const GgufFile file(path);
  for (const GgufTensor& tensor : file.tensors())
    if (format_of(tensor.type).decoded && tensor.elements() < 100000) file.load(tensor.name);
}

TEST(Gguf, SurvivesEveryDamagedByteAndEveryCut) {
  const std::string valid = small_gguf();
  MemoryFile memory;
  const auto refused = [&](const std::string& bytes) {
    try {
      use_gguf(memory.hold(bytes));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(valid));
  for (std::size_t cut = 0; cut < valid.size(); ++cut)
    EXPECT_TRUE(refused(valid.substr(0, cut))) << cut;
  int refusals = 0;
  for (std::size_t at = 0; at < valid.size(); ++at)
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string bytes = valid;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      refusals += refused(bytes) ? 1 : 0;
    }
  EXPECT_GT(refusals, 1000);
}

TEST(Gguf, SurvivesMutations) {
  MemoryFile memory;
  const int refused = survive_mutations(
      small_gguf(), 5000, [&](const std::string& bytes) { use_gguf(memory.hold(bytes)); });
  EXPECT_GT(refused, 2500);
}

}  // namespace
}  // namespace heddle::io
