#include <gtest/gtest.h>

#include <cmath>

#include "heddle/error.h"
#include "report/charts/bars.h"
#include "report/charts/chart.h"
#include "report/charts/heatmap.h"
#include "report/page/numbers.h"
#include "report/run/training.h"

namespace heddle::report {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Report, TextIsEscaped) {
  EXPECT_EQ(escaped("a<b & \"c\" 'd'>"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;");
  const std::string page = training_page(
      {.name = "<script>alert(1)</script>", .log = {}, .recipe = "text = \"</pre><b>\""});
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_FALSE(contains(page, "<b>"));
}

TEST(Report, TicksAreRoundAndWithin) {
  EXPECT_EQ(ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(3, 3, 5), std::vector<double>{});
  for (const double t : ticks(-0.37, 1234.5, 7)) {
    EXPECT_GE(t, -0.37);
    EXPECT_LE(t, 1234.5);
  }
}

TEST(Report, ChartsDrawEachSeriesWithinTheFrame) {
  LineChart c{.x_label = "x", .y_label = "y", .series = {}};
  Series a{.name = "a \"quoted\"", .points = {}};
  for (int i = 1; i <= 5000; ++i) a.points.push_back({static_cast<double>(i), std::sin(i) + 2});
  a.points.push_back({5001, NAN});
  a.points.push_back({5002, INFINITY});
  c.series = {a, {.name = "b", .points = {{1, 1}, {5000, 3}}, .band = {{1, 0, 2}, {5000, 2, 4}}}};
  for (const bool logarithmic : {false, true}) {
    c.log_x = c.log_y = logarithmic;
    const std::string svg = chart(c).text;
    EXPECT_TRUE(contains(svg, "&quot;a \\&quot;quoted\\&quot;&quot;")) << svg.substr(0, 400);
    EXPECT_FALSE(contains(svg, ",nan") || contains(svg, "nan,"));
    EXPECT_FALSE(contains(svg, ",inf") || contains(svg, "inf,"));
    EXPECT_LT(svg.size(), 60000u);
    EXPECT_TRUE(contains(svg, "polygon"));
  }
  c.series.clear();
  EXPECT_TRUE(contains(chart(c).text, "Nothing was measured"));
  c.series = {{.name = "one point", .points = {{1, 1}}}};
  EXPECT_FALSE(contains(chart(c).text, ",nan") || contains(chart(c).text, "nan,"));
}

// A pale line has a pale mark beside its name.
TEST(Report, LegendsHaveTheColoursOfTheirLines) {
  LineChart c{.x_label = "x", .y_label = "y", .series = {}};
  c.series = {{.name = "a", .points = {{1, 1}, {2, 2}}},
              {.name = "b", .points = {{1, 2}, {2, 1}}, .thin = true}};
  const std::string svg = chart(c).text;
  EXPECT_TRUE(contains(svg, R"x(class="line" style="stroke:var(--s0)")x")) << svg;
  EXPECT_TRUE(contains(svg, R"x(<i style="background:var(--s0)"></i>a)x")) << svg;
  EXPECT_TRUE(contains(svg, R"x(class="line thin" style="stroke:var(--s1)")x")) << svg;
  EXPECT_TRUE(contains(svg, R"x(<i class="thin" style="background:var(--s1)"></i>b)x")) << svg;
}

TEST(Report, NumbersReadWell) {
  EXPECT_EQ(bytes_text(512), "512 bytes");
  EXPECT_EQ(bytes_text(1536), "1.54 kB");
  EXPECT_EQ(count_text(123456), "123 k");
  EXPECT_EQ(count_text(12), "12");
  EXPECT_EQ(duration_text(3.14159), "3.1 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(7260), "2 h 01 min");
  EXPECT_EQ(duration_text(9.96), "10 s");  // not "10.0 s"
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(59.6), "1 min 00 s");
  EXPECT_EQ(duration_text(47 * 3600 + 59 * 60), "47 h 59 min");
  EXPECT_EQ(duration_text(76 * 3600), "3 days 4 h");
  EXPECT_EQ(duration_text(-1), "0.0 s");
  EXPECT_EQ(duration_text(1e300), duration_text(1e15));  // no number of seconds is too large
}

TEST(Report, ReadsALogAndLeavesAHalfWrittenLineOut) {
  const std::string line =
      R"({"step":10,"loss":2.5,"lr":0.001,"tokens":7680,"seconds":1.5,"tokens_per_s":5120,)"
      R"("grad_norm":1.25,"live_bytes":1000})";
  const TrainingLog log =
      parse_training_log(line + "\n{\"step\":10,\"eval_loss\":2.25}\n{\"step\":20,\"lo", "log");
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].loss, 2.5);
  EXPECT_EQ(log.steps[0].live_bytes, 1000);
  ASSERT_EQ(log.evals.size(), 1u);
  EXPECT_EQ(log.evals[0].loss, 2.25);
  EXPECT_THROW(parse_training_log("{\"step\":1}\n", "log"), Error);
  EXPECT_THROW(parse_training_log("what\n", "log"), Error);
  const std::string page = training_page({.name = "run", .log = log});
  EXPECT_TRUE(contains(page, "best validation loss"));
  EXPECT_TRUE(contains(page, "2.2500 (step 10)"));
  EXPECT_FALSE(contains(page, "communication")) << "one process talks to nobody";
  const std::string more =
      R"(,"sent_bytes":2500000,"communication_seconds":0.0125,"communication_hidden":0.4})";
  const TrainingLog ranks =
      parse_training_log(line.substr(0, line.size() - 1) + more + "\n", "log");
  ASSERT_EQ(ranks.steps.size(), 1u);
  EXPECT_TRUE(contains(training_page({.name = "run", .log = ranks}),
                       "2.50 MB sent, 12.5 ms of waiting, 40 % hidden"));
}

TEST(Report, HeatMapsShowNumbersAndWhatIsNone) {
  HeatMap map;
  map.x_label = "<key>";
  map.rows = {"a", "b"};
  map.values = {{1, -0.5, 0.25}, {-INFINITY, NAN, -0.001}};
  const std::string html = heat_map(map).text;
  EXPECT_TRUE(contains(html, ">1.00<"));
  EXPECT_TRUE(contains(html, ">-0.50<"));
  EXPECT_TRUE(contains(html, ">−∞<"));
  EXPECT_TRUE(contains(html, ">0.00<")) << "no minus in front of a rounded zero";
  EXPECT_TRUE(contains(html, "&lt;key&gt;"));
  EXPECT_FALSE(contains(html, ">nan") || contains(html, "\"nan") || contains(html, ":nan"));
  EXPECT_FALSE(contains(html, "fill-opacity:-"));
  EXPECT_TRUE(contains(heat_map({}).text, "Nothing was measured"));
}

TEST(Report, BarsShowTheirNumbers) {
  Bars two;
  two.groups = {"first", "second"};
  two.series = {{"a", {1, NAN}}, {"b", {-2, 3}}};
  const std::string html = bars(two).text;
  EXPECT_TRUE(contains(html, ">-2<"));
  EXPECT_TRUE(contains(html, ">3<"));
  EXPECT_FALSE(contains(html, ">nan") || contains(html, "\"nan") || contains(html, ":nan"));
  EXPECT_FALSE(contains(html, "height=\"-"));
  two.log_y = true;  // what is not positive has no bar
  EXPECT_FALSE(contains(bars(two).text, ">-2<"));
  EXPECT_FALSE(contains(bars(two).text, "\"inf") || contains(bars(two).text, "\"-inf"));
  EXPECT_TRUE(contains(bars({}).text, "Nothing was measured"));
}

TEST(Report, SmallNumbersBesideAnAxisAreShort) {
  LineChart c{.x_label = "x", .y_label = "y", .series = {}};
  c.series = {{.name = "a", .points = {{0, 0.0001}, {1, 0.0008}}}};
  const std::string svg = chart(c).text;
  EXPECT_NE(svg.find(">8×10⁻⁴<"), std::string::npos);
  EXPECT_EQ(svg.find("e-"), std::string::npos);
}

}  // namespace
}  // namespace heddle::report
