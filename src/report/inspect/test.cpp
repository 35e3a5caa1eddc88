#include <gtest/gtest.h>

#include "heddle/error.h"
#include "heddle/ops.h"
#include "report/inspect/base64.h"
#include "report/inspect/page.h"

namespace heddle::report {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("\xff\xfe\xfd\x00z"), "//79");  // a literal ends at its first zero
  EXPECT_EQ(base64(std::string_view("\0\xff", 2)), "AP8=");
}

model::ModelConfig decoder() {
  model::ModelConfig c;
  c.kind = model::Kind::decoder;
  return c;
}

// One layer of two heads over tokens of which one wants to end the script.
Inspection inspection(std::int64_t tokens) {
  Inspection i{.source = {}, .target = {}, .written = {}, .maps = model::AttentionMaps(decoder())};
  for (std::int64_t t = 0; t < tokens; ++t) i.source.push_back(t == 1 ? "</script>" : "a");
  nn::AttentionTrace t;
  t.q = ops::random_normal({1, tokens, 2, 4}, 0, 1, {1, 0, 1});
  t.k = ops::random_normal({1, tokens, 2, 4}, 0, 1, {1, 0, 2});
  t.options.mask.causal = true;
  t.row_sums = ops::attention_with_sums(t.q, t.k, t.k, t.options).row_sums;
  i.maps.see(0, false, t);
  return i;
}

std::size_t occurrences(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

MadePage page_of(const InspectPage& page, const Inspection& i, const MapRequest& request) {
  const HeadTable heads = summarise_heads(i);
  const MapChoice choice = choose(i.maps, request);
  const std::vector<InspectSide> sides = {{"", i, heads, choice}};
  return inspect_page(page, sides);
}

TEST(InspectPage, HoldsExactWeightsWhereTheyFit) {
  const Inspection i = inspection(5);
  InspectPage page{.title = "t", .subtitle = "s"};
  const MadePage all = page_of(page, i, {});
  EXPECT_EQ(all.exact_heads, 2);
  EXPECT_EQ(occurrences(all.html, "\"exact\":"), 2u);
  EXPECT_EQ(occurrences(all.html, "\"pooled\":"), 0u);
  EXPECT_EQ(all.html.find("</script>\""), std::string::npos) << "a token ended the script";
  EXPECT_NE(all.html.find("\\u003c/script>"), std::string::npos);
  // 15 visible weights of the second head, in order.
  std::vector<float> visible;
  for (std::int64_t q = 0; q < 5; ++q) {
    const auto row = i.maps.rows(0, 1, q, 1).to_vector<float>();
    visible.insert(visible.end(), row.begin(), row.begin() + q + 1);
  }
  const std::string data = base64({reinterpret_cast<const char*>(visible.data()), 60});
  EXPECT_NE(all.html.find(data), std::string::npos);

  page.most_exact_bytes = 100;  // one of them
  const MadePage one = page_of(page, i, {});
  EXPECT_EQ(one.exact_heads, 1);
  EXPECT_EQ(one.wanted_heads, 2);
  EXPECT_EQ(occurrences(one.html, "\"pooled\":"), 1u);
  const MadePage rows = page_of(page, i, {.rows = "1:3"});
  EXPECT_EQ(rows.exact_heads, 2);
  EXPECT_EQ(occurrences(rows.html, "\"pooled\":"), 2u) << "the other rows";
  EXPECT_NE(rows.html.find("\"open\":[0,0,1]"), std::string::npos);
}

// Two sides share the room that exact weights have. A head takes 80 bytes: of 200 each side has
// room for one.
TEST(InspectPage, TwoSidesHaveTheSameHeadsExactly) {
  const Inspection first = inspection(5), second = inspection(5);
  const HeadTable heads = summarise_heads(first);
  const MapChoice choice = choose(first.maps, {});
  const std::vector<InspectSide> sides = {{"A", first, heads, choice},
                                          {"B", second, heads, choice}};
  const MadePage made =
      inspect_page({.title = "t", .subtitle = "", .most_exact_bytes = 200}, sides);
  EXPECT_EQ(made.exact_heads, 2);
  EXPECT_EQ(made.wanted_heads, 4);
  EXPECT_EQ(occurrences(made.html, "\"name\":\"A\""), 1u);
  EXPECT_EQ(occurrences(made.html, "\"name\":\"B\""), 1u);
}

TEST(InspectPage, SidesThatCannotBeComparedAreRefused) {
  const Inspection text = inspection(5);
  Inspection image = inspection(5);
  image.grid = model::PatchGrid{2, 2, 1, true};
  image.image = Tensor::zeros({1, 4, 4}, DType::u8);
  const HeadTable heads = summarise_heads(text);
  const MapChoice choice = choose(text.maps, {});
  const InspectSide a{"A", text, heads, choice}, b{"B", image, heads, choice};
  for (const std::vector<InspectSide>& bad :
       {std::vector<InspectSide>{}, std::vector<InspectSide>{a, a, a},
        std::vector<InspectSide>{a, b}})
    EXPECT_THROW(inspect_page({.title = "t", .subtitle = ""}, bad), Error) << bad.size();
}

TEST(MapRequest, IsCheckedAgainstTheMaps) {
  const Inspection i = inspection(5);
  const auto message = [&](const MapRequest& r) -> std::string {
    try {
      choose(i.maps, r);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({.layers = {"1"}}).find("--layer"), std::string::npos);
  EXPECT_NE(message({.heads = {2}}).find("0 to 1"), std::string::npos);
  for (const char* bad : {"3:3", "0:6", "a:b", "1:2:3", "-1:2", "9", "5", "9223372036854775807",
                          "9223372036854775808"}) {
    EXPECT_NE(message({.rows = bad}).find("--rows"), std::string::npos) << bad;
    EXPECT_NE(message({.rows = bad}).find(bad), std::string::npos) << "not as it was given";
  }
  const MapChoice c = choose(i.maps, {.heads = {1}, .rows = "2:"});
  ASSERT_EQ(c.heads.size(), 1u);
  EXPECT_EQ(c.heads[0].head, 1);
  EXPECT_EQ(c.rows_of(i.maps.layers()[0]).end, 5);
  EXPECT_EQ(choose(i.maps, {.rows = "4"}).rows->end, 5);
  const MapChoice repeated = choose(i.maps, {.layers = {"0", "0"}, .heads = {1, 0, 1}});
  ASSERT_EQ(repeated.heads.size(), 2u) << "a head more than once";
  EXPECT_EQ(repeated.heads[0].head, 1);
  EXPECT_EQ(repeated.heads[1].head, 0);
}

}  // namespace
}  // namespace heddle::report
