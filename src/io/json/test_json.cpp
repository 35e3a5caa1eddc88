#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "io/files/memory_limit.h"
#include "io/json/json.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

const char* const kConfig = R"({
  "hidden_size": 768,
  "eps": 1e-5,
  "tie": true,
  "name": "größe \ud83e\udd80",
  "rope_scaling": {"factor": 8.0, "type": "llama3", "nothing": null},
  "ids": [1, 2, -3],
  "huge": 18446744073709551615
})";

Json config() { return Json::parse(kConfig, "config.json"); }

TEST(Json, GettersReadWhatIsThere) {
  const Json c = config();
  EXPECT_EQ(c.at("hidden_size").integer(), 768);
  EXPECT_EQ(c.at("hidden_size").number(), 768.0);
  EXPECT_EQ(c.at("eps").number(), 1e-5);
  EXPECT_TRUE(c.at("tie").boolean());
  EXPECT_EQ(c.at("name").string(), "größe \U0001F980");
  EXPECT_EQ(c.at("ids").integers(), (std::vector<std::int64_t>{1, 2, -3}));
  EXPECT_EQ(c.at("ids").numbers(), (std::vector<double>{1, 2, -3}));
  EXPECT_EQ(c.at("rope_scaling").at("factor").path(), "rope_scaling.factor");
  EXPECT_EQ(c.at("ids").at(2).path(), "ids[2]");
  EXPECT_EQ(c.at("rope_scaling").keys(), (std::vector<std::string>{"factor", "nothing", "type"}));
  EXPECT_EQ(c.integer_or("layers", 12), 12);
  EXPECT_EQ(c.integer_or("hidden_size", 12), 768);
  EXPECT_EQ(c.number_or("eps", 1), 1e-5);
  EXPECT_EQ(c.string_or("missing", "x"), "x");
  EXPECT_FALSE(c.boolean_or("missing", false));
  EXPECT_FALSE(c.at("rope_scaling").has("nothing"));
  EXPECT_EQ(c.at("rope_scaling").integer_or("nothing", 4), 4);
  EXPECT_EQ(Json::parse("[\"a\"]", "x").strings(), std::vector<std::string>{"a"});
}

TEST(Json, OutlivesItsParents) {
  const Json factor = config().at("rope_scaling").at("factor");
  EXPECT_EQ(factor.number(), 8.0);
}

TEST(Json, ErrorsNameFileKeyExpectedAndGot) {
  const Json c = config();
  expect_refusal([&] { c.at("eps").integer(); },
                 {"config.json: key eps; expected an integer; got 1e-05"});
  expect_refusal([&] { c.at("rope_scaling").at("type").number(); },
                 {"config.json: key rope_scaling.type; expected a number; got \"llama3\""});
  expect_refusal([&] { c.at("ids").at(1).string(); }, {"key ids[1]; expected a string; got 2"});
  expect_refusal([&] { c.at("ids").at(3); }, {"key ids", "more than 3 values"});
  expect_refusal([&] { c.at("hiden_size"); }, {"key hiden_size is missing", "\"hidden_size\""});
  expect_refusal([&] { c.at("tie").at("x"); }, {"key tie; expected an object; got true"});
  expect_refusal([&] { c.at("tie").integers(); }, {"expected an array"});
  expect_refusal([&] { c.at("huge").integer(); }, {"an integer", "18446744073709551615"});
  expect_refusal([&] { c.at("hidden_size").integer(1, 512); }, {"an integer from 1 to 512", "768"});
  expect_refusal([&] { c.at("hidden_size").boolean(); }, {"true or false"});
  expect_refusal([&] { (void)c.boolean_or("eps", true); }, {"key eps", "true or false"});
  expect_refusal([] { Json::parse("3", "x").at("a"); }, {"x: the document; expected an object"});
}

TEST(Json, SyntaxErrorsNameLineAndColumn) {
  expect_refusal([] { Json::parse("{\n  \"a\": tru,\n}", "f.json"); },
                 {"f.json:2:11: ", "invalid literal"});
  expect_refusal([] { Json::parse("{\"a\": 1", "f"); }, {"f:1:8: ", "unexpected end of input"});
  expect_refusal([] { Json::parse("", "f"); }, {"f:1:1: ", "unexpected end"});
  expect_refusal([] { Json::parse("1 2", "f"); }, {"f:1:3: "});
  expect_refusal([] { Json::parse("[1e999]", "f"); }, {"f:1:", "number overflow"});
  expect_refusal([] { Json::parse("[\"\xff\"]", "f"); }, {"f:1:3: ", "UTF-8", "\\xff"});
  expect_refusal([] { Json::parse(std::string("{}\0 garbage", 11), "f"); }, {"f:1:3: ", "NUL"});
  expect_refusal([] { Json::parse("[NaN]", "f"); }, {"f:1:2: "});
  const std::string long_token = "[\"" + std::string(1 << 20, 'x');
  EXPECT_LT(refusal([&] { Json::parse(long_token, "f"); }).size(), 500u);
}

TEST(Json, RefusesWhatWouldBeLostInSilence) {
  expect_refusal([] { Json::parse("{\"a\": 1,\n \"a\": 2}", "f"); },
                 {"f:2:", "the key \"a\" comes twice"});
  EXPECT_NO_THROW(Json::parse(R"({"a": {"a": 1}, "b": {"a": 1}})", "f"));
}

TEST(Json, LimitsDepthAndSize) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NO_THROW(Json::parse(nested(64), "f"));
  expect_refusal([&] { Json::parse(nested(65), "f"); }, {"f:1:65: ", "too deeply", "64 levels"});
  expect_refusal([&] { Json::parse(nested(1000000), "f"); }, {"too deeply"});
  expect_refusal([] { Json::parse("[1, 2]", "f", {.max_bytes = 5}); }, {"f: ", "at most 5 bytes"});
  const TempDir dir;
  expect_refusal([&] { Json::read(dir.file("a.json", "[1, 2]"), {.max_bytes = 5}); }, {"a.json"});
}

TEST(Json, WritesWhatItReads) {
  const TempDir dir;
  const std::string path = dir.file("out.json");
  write_json(path, config().raw());
  EXPECT_EQ(Json::read(path).raw(), config().raw());
  EXPECT_EQ(slurp(path).back(), '\n');
  expect_refusal([&] { write_json(path, {{"a", "\xff"}}); }, {path, "UTF-8"});
  EXPECT_EQ(Json::read(path).raw(), config().raw());
}

RC_GTEST_PROP(Json, AgreesWithThePlainParser, (const std::vector<std::string>& raw)) {
  nlohmann::json document = nlohmann::json::array();
  for (const std::string& s : raw) {
    std::string ascii;
    for (const char ch : s) ascii += static_cast<char>(ch & 0x7f);
    document.push_back({{"text", ascii}, {"size", s.size()}, {"half", s.size() / 2.0}});
  }
  RC_ASSERT(Json::parse(document.dump(), "x").raw() == document);
}

TEST(Json, SurvivesMutations) {
  const int refused = survive_mutations(kConfig, 4000, [](const std::string& bytes) {
    const Json c = Json::parse(bytes, "fuzz");
    if (c.is_object())
      for (const std::string& key : c.keys()) (void)c.at(key).raw().dump();
  });
  EXPECT_GT(refused, 2000);
}

TEST(Json, AsManyValuesAsTheMemoryHolds) {
  const PretendMemory memory(4 * 80 * 100);
  const auto array = [](int values) {
    std::string text = "[";
    for (int i = 0; i < values; ++i) text += i == 0 ? "[]" : ",[]";
    return text + "]";
  };
  EXPECT_EQ(Json::parse(array(99), "x").size(), 99u);
  expect_refusal([&] { Json::parse(array(100), "x"); }, {"x:1:", "too many values", "than 100"});
}

}  // namespace
}  // namespace heddle::io
