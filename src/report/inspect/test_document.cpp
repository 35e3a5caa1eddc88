// The document that the page's script reads, part by part.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heddle/ops.h"
#include "report/inspect/base64.h"
#include "report/inspect/page.h"

namespace heddle::report {
namespace {

using nlohmann::json;

// Causal layers of two heads over so many tokens, each with its look_back; 0: none.
Inspection seen(std::int64_t tokens, const std::vector<std::int64_t>& look_back) {
  model::ModelConfig config;
  config.kind = model::Kind::decoder;
  Inspection i{.source = {}, .target = {}, .written = {}, .maps = model::AttentionMaps(config)};
  for (std::int64_t t = 0; t < tokens; ++t) i.source.push_back("t" + std::to_string(t));
  for (std::size_t layer = 0; layer < look_back.size(); ++layer) {
    nn::AttentionTrace t;
    t.q = ops::random_normal({1, tokens, 2, 4}, 0, 1, {1, 0, 1});
    t.k = ops::random_normal({1, tokens, 2, 4}, 0, 1, {1, 0, 2});
    t.options.mask.causal = true;
    if (look_back[layer] > 0) t.options.mask.look_back = look_back[layer];
    t.row_sums = ops::attention_with_sums(t.q, t.k, t.k, t.options).row_sums;
    i.maps.see(static_cast<std::int64_t>(layer), false, t);
  }
  return i;
}

json document_of(const Inspection& i, const MapRequest& request = {},
                 std::int64_t most_bytes = 1 << 20) {
  const InspectPage page{.title = "t", .subtitle = "s", .most_exact_bytes = most_bytes};
  const HeadTable heads = summarise_heads(i);
  const MapChoice choice = choose(i.maps, request);
  const bool asked = !request.layers.empty() || !request.heads.empty();
  const std::vector<InspectSide> sides = {{"", i, heads, choice, asked}};
  const std::string html = inspect_page(page, sides).html;
  const std::string begin = "id=\"attention-data\">";
  const std::size_t at = html.find(begin) + begin.size();
  return json::parse(html.substr(at, html.find("</script>", at) - at))["sides"][0];
}

TEST(Base64, ALastGroupMayBeShortBehindOthers) {
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

// Up to 48 heads have maps of up to 128 cells, more of them of 64.
TEST(InspectDocument, MapsOfFewHeadsAreFiner) {
  const auto cells = [](std::size_t layers) {
    const HeadTable heads = summarise_heads(seen(100, std::vector<std::int64_t>(layers, 0)));
    return heads.back().back().pooled.rows;
  };
  EXPECT_EQ(cells(24), 100);
  EXPECT_EQ(cells(25), 64);
}

TEST(InspectDocument, EveryMaskIsWrittenOnce) {
  const json d = document_of(seen(4, {0, 1, 0}));
  ASSERT_EQ(d["masks"].size(), 2u);
  EXPECT_EQ(d["masks"][0]["first"], json({0, 0, 0, 0}));
  EXPECT_EQ(d["masks"][0]["last"], json({1, 2, 3, 4}));
  EXPECT_EQ(d["masks"][1]["last"], json({1, 2, 3, 4}));
  EXPECT_EQ(d["masks"][1]["first"], json({0, 0, 1, 2}));
  EXPECT_EQ(d["layers"][0]["mask"], 0);
  EXPECT_EQ(d["layers"][1]["mask"], 1);
  EXPECT_EQ(d["layers"][2]["mask"], 0);
  EXPECT_EQ(d["tokens"]["source"], json({"t0", "t1", "t2", "t3"}));
  EXPECT_EQ(d["layers"][2]["rows"], 4);
  EXPECT_EQ(d["layers"][2]["columns"], 4);
  EXPECT_EQ(d["layers"][2]["name"], "2");
  EXPECT_EQ(d["layers"][2]["queries"], "source");
}

TEST(InspectDocument, OpensWhereThereIsMostToSee) {
  EXPECT_EQ(document_of(seen(4, {0, 0}))["open"], json({0, 0, 3}));  // the last of a text
  EXPECT_EQ(document_of(seen(4, {0, 0}), {.layers = {"1"}, .heads = {1}})["open"], json({1, 1, 3}));
  EXPECT_EQ(document_of(seen(4, {0}), {.rows = "2"})["open"], json({0, 0, 2}));
  Inspection image = seen(13, {0});  // patches of 3 × 4 behind a class token
  image.image = Tensor::zeros({1, 3, 4}, DType::u8);
  image.grid = model::PatchGrid{3, 4, 1, true};
  EXPECT_EQ(document_of(image)["open"], json({0, 0, 0}));
  EXPECT_EQ(document_of(image)["image"]["rows"], 3);
  EXPECT_EQ(document_of(image)["image"]["columns"], 4);
  image = seen(12, {0});
  image.image = Tensor::zeros({1, 3, 4}, DType::u8);
  image.grid = model::PatchGrid{3, 4};
  EXPECT_EQ(document_of(image)["open"], json({0, 0, 6}));  // row 1, column 2
}

// Cross-attention of two heads over four keys: the second looks at one of them, the first at all.
TEST(InspectDocument, TranslationOpensTheMostDecidedCrossAttention) {
  model::ModelConfig config;
  config.kind = model::Kind::encoder_decoder;
  Inspection i{.source = {"a", "b", "c", "d"},
               .target = {"<s>", "x"},
               .written = {"x", "</s>"},
               .maps = model::AttentionMaps(config)};
  nn::AttentionTrace t;
  t.q = Tensor::from<float>({1, 2, 2, 2}, std::vector<float>{0, 0, 9, 0, 0, 0, 9, 0});
  t.k = Tensor::from<float>({1, 4, 2, 2}, std::vector<float>{0, 0, 9, 0, 0, 0, 0, 0,  //
                                                             0, 0, 0, 0, 0, 0, 0, 0});
  t.row_sums = ops::attention_with_sums(t.q, t.k, t.k, t.options).row_sums;
  i.maps.see(0, true, t);
  EXPECT_EQ(document_of(i)["layers"][0]["part"], "cross");
  EXPECT_EQ(document_of(i)["open"], json({0, 1, 1}));
  EXPECT_EQ(document_of(i, {.heads = {0}})["open"], json({0, 0, 1})) << "what was asked for";
}

TEST(InspectDocument, RowsThatWereAskedForAreExact) {
  const json d = document_of(seen(4, {0, 0}), {.layers = {"1"}, .heads = {1}, .rows = "1:3"});
  EXPECT_FALSE(d["layers"][0]["maps"][1].contains("exact"));
  EXPECT_FALSE(d["layers"][1]["maps"][0].contains("exact"));
  const json& exact = d["layers"][1]["maps"][1]["exact"];
  EXPECT_EQ(exact["first"], 1);
  EXPECT_EQ(exact["count"], 2);
  EXPECT_EQ(exact["data"].get<std::string>().size(), 28u);  // 2 + 3 floats, 20 bytes in base64
}

// Ten weights take 53 bytes as base64, by the rule of 16 bytes for three.
TEST(InspectDocument, WeightsFitTheirBudgetOrStayPooled) {
  const auto exact = [](std::int64_t most) {
    const json d = document_of(seen(4, {0}), {}, most);
    return std::pair(d["layers"][0]["maps"][0].contains("exact"),
                     d["layers"][0]["maps"][1].contains("exact"));
  };
  EXPECT_EQ(exact(52), std::pair(false, false));
  EXPECT_EQ(exact(53), std::pair(true, false));
  EXPECT_EQ(exact(105), std::pair(true, false));
  EXPECT_EQ(exact(106), std::pair(true, true));
}

TEST(InspectDocument, StatisticsThatAreAbsentAreLeftOut) {
  model::HeadStats s;
  s.queries = 7;
  EXPECT_EQ(stats_json(s), json({{"queries", 7}}));
  s.entropy_bits = 1;
  s.entropy_share = 2;
  s.largest = 3;
  s.first = 4;
  s.last = 5;
  s.distance = 6;
  s.self = 7;
  s.previous = 8;
  s.next = 9;
  s.monotonicity = 10;
  s.sink = 11;
  EXPECT_EQ(stats_json(s), json({{"queries", 7},
                                 {"entropy_bits", 1.0},
                                 {"entropy_share", 2.0},
                                 {"largest", 3.0},
                                 {"first", 4.0},
                                 {"last", 5.0},
                                 {"distance", 6.0},
                                 {"self", 7.0},
                                 {"previous", 8.0},
                                 {"next", 9.0},
                                 {"monotonicity", 10.0},
                                 {"sink", 11.0}}));
}

}  // namespace
}  // namespace heddle::report
