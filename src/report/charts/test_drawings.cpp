// Drawings to the unit, computed by hand: a chart has 1000 × 420 units, values lie between x = 70
// and 980 and y = 372 (low) and 28, with 4 % of room above and below.
#include <gtest/gtest.h>

#include <cmath>

#include "report/charts/axis.h"
#include "report/charts/bars.h"
#include "report/charts/chart.h"
#include "report/charts/heatmap.h"
#include "report/charts/stacked_bars.h"
#include "report/page/numbers.h"

namespace heddle::report {
namespace {

void expect_parts(const std::string& svg, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\nis not in\n" << svg;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

LineChart one_line(std::vector<Point> points) {
  return {.x_label = "steps", .y_label = "loss", .series = {{.name = "a", .points = points}}};
}

TEST(ReportDrawings, ALineGoesThroughItsPoints) {
  // y from -4 to 104: 0 is at 372 - 344 · 4 / 108.
  const std::string svg = chart(one_line({{0, 0}, {10, 100}})).text;
  expect_parts(svg, {R"(viewBox="0 0 1000 420")", R"(points="70.0,359.3 980.0,40.7 ")",
                     R"(<circle r="3" cx="70.0" cy="359.3"/>)", "[[0,0,70.0],[10,100,980.0]]",
                     R"(<line class="grid" x1="70" x2="980" y1="295.6" y2="295.6"/><text x="62" )"
                     R"(y="295.6" text-anchor="end" dominant-baseline="middle">20</text>)",
                     R"(<text x="252.0" y="390" text-anchor="middle">2</text>)",
                     R"(<text x="525" y="412" text-anchor="middle">steps</text>)",
                     R"(<text x="70" y="16">loss</text>)", R"(class="pointer" y1="28" y2="372")",
                     R"(class="reading" x="980" y="16")"});
  EXPECT_EQ(count_of(svg, "<line class=\"grid\""), 6u) << "0, 20, ... 100";
  EXPECT_EQ(svg.find("legend"), std::string::npos) << "one line needs none";
}

TEST(ReportDrawings, ABandLiesBetweenItsEnds) {
  LineChart c = one_line({{0, 0}, {10, 100}});
  c.series[0].band = {{0, 10, 30}, {10, 50, 90}};
  expect_parts(chart(c).text, {R"(points="70.0,263.7 980.0,72.6 980.0,200.0 70.0,327.4 ")"});
  c.series[0].band.push_back({11, NAN, 1});  // left out, and of no influence on the axes
  expect_parts(chart(c).text, {R"(points="70.0,263.7 980.0,72.6 980.0,200.0 70.0,327.4 ")"});
  c.series[0].band = {{0, -100, 0}};  // -108 to 108: the band counts for the axis
  expect_parts(chart(c).text, {R"(points="70.0,200.0 980.0,40.7 ")"});
}

TEST(ReportDrawings, LogarithmicAxesGoByPowersOfTen) {
  LineChart c = one_line({{1, 1}, {2, 0}, {4, 10}, {16, 1000}});  // 0 has no logarithm
  c.log_x = c.log_y = true;
  // y: 10⁰ to 10³ and 0.12 of room; x: 16 = 4².
  expect_parts(chart(c).text, {R"(points="70.0,359.3 525.0,253.1 980.0,40.7 ")",
                               R"(y="253.1" text-anchor="end" dominant-baseline="middle">10<)",
                               ">100<", ">1000<", R"(y="390" text-anchor="middle">1<)"});
  c = one_line({{1, 2}, {3, 5}});  // no two powers of ten: ticks as on any axis
  c.log_y = true;
  const std::string svg = chart(c).text;
  expect_parts(svg, {">2<", ">3<", ">4<", ">5<"});
  EXPECT_EQ(count_of(svg, "<line class=\"grid\""), 4u) << svg;
}

TEST(ReportDrawings, OneValueStandsInTheMiddle) {
  expect_parts(chart(one_line({{3, 20}})).text,
               {R"(points="70.0,200.0 ")", ">18<", ">19<", ">22<"});  // a tenth above and below
  expect_parts(chart(one_line({{3, 0}})).text, {R"(points="70.0,200.0 ")", ">-0.4<", ">0.4<"});
}

TEST(ReportDrawings, ManyPointsAreMeansOfNeighbours) {
  const auto straight = [](int count) {
    std::vector<Point> all;
    for (int i = 1; i <= count; ++i) all.push_back({static_cast<double>(i), 2.0 * i});
    return chart(one_line(all)).text;
  };
  const std::string thinned = straight(1001);  // by three; two are left for the last
  expect_parts(thinned, {"[[2,4,70.9],[5,10,73.6],", ",[1000.5,2001,979.5]]"});
  expect_parts(straight(500), {"[[1,2,70.0],[2,4,71.8],"});  // 500 are not too many
  EXPECT_EQ(count_of(straight(40), "<circle"), 40u);
  EXPECT_EQ(count_of(straight(41), "<circle"), 0u);
}

TEST(ReportDrawings, LargeNumbersBesideAnAxisAreShort) {
  expect_parts(chart(one_line({{0, 0}, {1, 3e9}})).text, {">1 G<", ">3 G<"});
  expect_parts(chart(one_line({{0, 0}, {1, 3e6}})).text, {">1 M<", ">3 M<"});
  expect_parts(chart(one_line({{0, 0}, {1, 3e4}})).text, {">10 k<", ">30 k<"});
  expect_parts(chart(one_line({{0, -9000}, {1, 0}})).text, {">-8000<", ">0<"});
}

// Eight bars of 45 units: two numbers of nine characters beside each other would meet.
TEST(ReportDrawings, NumbersOfNarrowBarsDoNotMeet) {
  Bars b;
  b.log_y = true;
  b.groups = {"1", "2", "3", "4", "5", "6", "7", "8"};
  b.series = {{"a", std::vector<double>(8, 1e-7)}, {"b", std::vector<double>(8, 1e-7)}};
  const std::string narrow = bars(b).text;
  expect_parts(narrow, {"y=\"175.0\" text-anchor=\"middle\">1.0×10⁻⁷",
                        "y=\"159.0\" text-anchor=\"middle\">1.0×10⁻⁷"});
  b.groups = {"1"};
  EXPECT_EQ(count_of(bars(b).text, "y=\"159.0\""), 0u) << "wide bars have room";
}

TEST(ReportDrawings, LogarithmicAxesHaveNoMoreNumbersThanRoom) {
  LineChart c = one_line({{1100, 1e-14}, {90000, 1}});  // one power of ten; fourteen of them
  c.log_x = c.log_y = true;
  const std::string svg = chart(c).text;
  EXPECT_LE(count_of(svg, "<line class=\"grid\""), 8u) << svg;
  expect_parts(svg, {">10 k<", ">20 k<", ">30 k<", ">40 k<", ">60 k<", ">80 k<"});
  EXPECT_EQ(svg.find(">50 k<"), std::string::npos) << "too near to 40 k";
}

// One axis, one way to write: the same digits behind the point, the same unit.
TEST(ReportDrawings, NumbersOfAnAxisAreWrittenAlike) {
  using Texts = std::vector<std::string>;
  const auto texts = [](const std::vector<double>& ticks) { return tick_texts(ticks); };
  EXPECT_EQ(texts({0, 0.5, 1, 1.5}), (Texts{"0", "0.5", "1.0", "1.5"}));
  EXPECT_EQ(texts({9000, 9500, 10000, 10500}), (Texts{"9.0 k", "9.5 k", "10.0 k", "10.5 k"}));
  EXPECT_EQ(texts({5e5, 1e6}), (Texts{"0.5 M", "1.0 M"}));
  EXPECT_EQ(texts({0.1, 1, 10, 100, 1000}), (Texts{"0.1", "1", "10", "100", "1000"}));
  EXPECT_EQ(texts({100, 1000, 10000, 100000}), (Texts{"10²", "10³", "10⁴", "10⁵"}));
  EXPECT_EQ(texts({1e-4, 1e-3, 1e-2}), (Texts{"10⁻⁴", "10⁻³", "10⁻²"}));
  EXPECT_EQ(texts({2e-5, 4e-5}), (Texts{"2×10⁻⁵", "4×10⁻⁵"}));
  EXPECT_EQ(texts({-0.2, 1e-17, 0.2}), (Texts{"-0.2", "0", "0.2"}));
  EXPECT_EQ(texts({}), Texts{});
  EXPECT_EQ(scientific(9.996e-4, 2), "1.00×10⁻³");
  EXPECT_EQ(scientific(-2.5e10, 1), "-2.5×10¹⁰");
}

TEST(ReportDrawings, TicksAreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_EQ(ticks(0, 4, 4), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(ticks(0, 70, 10), (std::vector<double>{0, 10, 20, 30, 40, 50, 60, 70}));
  EXPECT_EQ(ticks(11, 39, 1), std::vector<double>{});  // steps of 50
  EXPECT_EQ(ticks(0, 7, 1), std::vector<double>{0});
  EXPECT_EQ(ticks(0, 10, 0), std::vector<double>{});
  EXPECT_EQ(ticks(2, 1, 5), std::vector<double>{});
}

// Both axes have room at their ends: 1 is at 70 + 910 · 0.04 / 1.08.
TEST(ReportDrawings, NamesStandBesideTheirPoints) {
  LineChart c = one_line({{1, 1}});
  c.series.push_back({.name = "b", .points = {{2, 3}, {NAN, 1}}});
  c.named_points = true;
  const std::string svg = chart(c).text;
  expect_parts(svg, {R"x(<circle r="5" cx="103.7" cy="359.3" style="fill:var(--s0)"/>)x"
                     R"x(<text x="113.7" y="359.3" text-anchor="start" )x"
                     R"x(dominant-baseline="middle">a</text>)x",
                     R"x(<circle r="5" cx="946.3" cy="40.7" style="fill:var(--s1)"/>)x"
                     R"x(<text x="936.3" y="40.7" text-anchor="end" )x"
                     R"x(dominant-baseline="middle">b</text>)x"});
  EXPECT_EQ(count_of(svg, "<circle"), 2u);
}

// Two points at one place and a third beside them: names go above and below, and what has no room
// is told by a legend.
TEST(ReportDrawings, NamesOfNeighboursDoNotCoverEachOther) {
  LineChart c = one_line({{1, 1}});
  c.series = {{.name = "first of all", .points = {{1, 1}}},
              {.name = "the second", .points = {{1, 1}}},
              {.name = "far", .points = {{2, 3}}}};
  c.named_points = true;
  std::string svg = chart(c).text;
  expect_parts(svg, {R"x(<text x="113.7" y="359.3" text-anchor="start" )x",
                     R"x(<text x="113.7" y="345.3" text-anchor="start" )x"});
  EXPECT_EQ(svg.find("legend"), std::string::npos);
  for (const char* name : {"third", "fourth", "fifth", "sixth"})
    c.series.push_back({.name = name, .points = {{1, 1}}});
  svg = chart(c).text;
  EXPECT_NE(svg.find("legend"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<circle"), 7u);
}

// From -2.24 to 3.24 over 280 units: 0 is at 320 - 280 · 2.24 / 5.48.
TEST(ReportDrawings, BarsBeginAtNothing) {
  Bars b;
  b.y_label = "nats";
  b.groups = {"first", "second"};
  b.series = {{"a", {1, NAN}}, {"b", {-2, 3}}};
  const std::string svg = bars(b).text;
  expect_parts(svg, {R"x(<rect x="208.5" y="154.5" width="88.0" height="51.1" )x"
                     R"x(style="fill:var(--s0)"/>)x"
                     R"x(<text class="value" x="252.5" y="149.5" text-anchor="middle">1</text>)x",
                     R"x(<rect x="298.5" y="205.5" width="88.0" height="102.2" )x"
                     R"x(style="fill:var(--s1)"/>)x"
                     R"x(<text class="value" x="342.5" y="321.7" text-anchor="middle">-2</text>)x",
                     R"x(<rect x="753.5" y="52.3" width="88.0" height="153.3" )x"
                     R"x(style="fill:var(--s1)"/>)x",
                     R"(<line class="grid" x1="70" x2="980" y1="103.4" y2="103.4"/><text x="62" )"
                     R"(y="103.4" text-anchor="end" dominant-baseline="middle">2</text>)",
                     R"(<text x="297.5" y="340" text-anchor="middle">first</text>)",
                     R"(<text x="70" y="16">nats</text>)",
                     R"x(<span><i style="background:var(--s1)"></i>b</span>)x"});
  EXPECT_EQ(count_of(svg, "<rect"), 3u);
  b.series.pop_back();
  EXPECT_EQ(bars(b).text.find("legend"), std::string::npos);
  b.series.clear();
  expect_parts(bars(b).text, {"Nothing was measured"});
}

TEST(ReportDrawings, BarsOfNothingHaveTheirNumber) {
  Bars b;
  b.groups = {"x"};
  b.series = {{"a", {0}}};  // from 0 to 1
  expect_parts(bars(b).text,
               {R"(x="481.0" y="320.0" width="88.0" height="1.0")",
                R"(x="525.0" y="315.0" text-anchor="middle">0</text>)", ">1.0</text>"});
}

// The smallest of 10 and 1000 has a length, the power of ten below it.
TEST(ReportDrawings, LogarithmicBarsBeginAPowerOfTenBelow) {
  Bars b;
  b.log_y = true;
  b.groups = {"x"};
  b.series = {{"a", {10}}, {"b", {1000}}, {"c", {0}}};
  const std::string svg = bars(b).text;
  expect_parts(svg, {R"(y="250.0" width="88.0" height="70.0")",
                     R"(y="110.0" width="88.0" height="210.0")", ">1<", ">10<", ">10000<"});
  EXPECT_EQ(count_of(svg, "<rect"), 2u);
  EXPECT_EQ(count_of(svg, "<line class=\"grid\""), 5u);
  b.series = {{"a", {1e-7}}, {"b", {2e9}}};  // 18 powers of ten in steps of three
  const std::string wide = bars(b).text;
  expect_parts(wide, {">1.0×10⁻⁷<", ">2.0×10⁹<", ">10⁻⁸<", ">10⁻⁵<"});
  EXPECT_EQ(count_of(wide, "<line class=\"grid\""), 7u);
}

// The longest sum, 4, takes the 630 units between the names and the sums.
TEST(ReportDrawings, StackedBarsStandEndToEnd) {
  StackedBars b{
      .parts = {"p", "q"}, .bars = {{"one", {1, 2}}, {"two", {3, 1}}}, .text = bytes_text};
  expect_parts(stacked_bars(b).text,
               {R"(viewBox="0 0 1000 60")",
                R"(<text x="248" y="15" text-anchor="end" dominant-baseline="middle">one</text>)",
                R"x(<rect x="260.0" y="6.0" width="157.5" height="18" )x"
                R"x(style="fill:var(--s0)"><title>p: 1 bytes)x",
                R"x(<rect x="417.5" y="6.0" width="315.0" height="18" )x"
                R"x(style="fill:var(--s1)"><title>q: 2 bytes)x",
                R"(<text x="740.5" y="15" dominant-baseline="middle">3 bytes</text>)",
                R"x(<rect x="732.5" y="36.0" width="157.5" height="18" style="fill:var(--s1)">)x",
                R"(<text x="898.0" y="45" dominant-baseline="middle">4 bytes</text>)",
                R"x(<div class="legend"><span><i style="background:var(--s0)"></i>p</span>)x"});
  const std::string forty(40, 'n');
  b = {.parts = {"p"}, .bars = {{forty, {1}}, {forty + "m", {1}}}, .text = bytes_text};
  const std::string svg = stacked_bars(b).text;
  expect_parts(svg, {(">" + forty + "<").c_str(), (">" + forty.substr(1) + "…<").c_str()});
  EXPECT_EQ(svg.find("legend"), std::string::npos) << "one part needs none";
}

// Room on the left: 20 + 7 for each letter of "query"; cells of 56 × 30.
TEST(ReportDrawings, CellsOfAMapStandInRowsAndColumns) {
  HeatMap map;
  map.x_label = "key";
  map.y_label = "query";
  map.rows = {"a", "b"};
  map.values = {{1, -0.5}, {0.25, INFINITY}};
  expect_parts(
      heat_map(map).text,
      {R"(viewBox="0 0 179.0 118.0" style="width:179px")",
       R"(<text x="55.0" y="14">key</text><text x="4" y="38.0">query</text>)",
       R"(<text x="139.00" y="38.0" text-anchor="middle">1</text>)",
       R"(<text x="47.0" y="91.00" text-anchor="end" dominant-baseline="central">b</text>)",
       R"x(<title>a, 1: -0.5</title><rect class="cell" x="111.00" y="46.00" width="56.00" )x"
       R"x(height="30.00" style="fill:var(--s1);fill-opacity:0.310"/>)x",
       R"x(<title>b, 0: 0.25</title><rect class="cell" x="55.00" y="76.00" width="56.00" )x"
       R"x(height="30.00" style="fill:var(--s0);fill-opacity:0.155"/>)x",
       R"(x="83.00" y="61.00" text-anchor="middle" dominant-baseline="central">1.00</text>)",
       R"x(<title>b, 1: ∞</title>)x", ">∞</text>"});
  map.limit = 2;  // full colour there
  map.digits = 1;
  expect_parts(heat_map(map).text, {"fill-opacity:0.310\"/><text class=\"value\" x=\"83.00\" "
                                    "y=\"61.00\" text-anchor=\"middle\" "
                                    "dominant-baseline=\"central\">1.0<"});
  map.limit = 0.25;  // and no more than that beyond it
  expect_parts(heat_map(map).text, {"fill-opacity:0.620"});
  map.limit = 0;  // the largest of them has full colour, however small it is
  map.values = {{0.01, -0.02}};
  expect_parts(heat_map(map).text, {"fill-opacity:0.310", "fill-opacity:0.620"});
  map.values = {{0, 0}};
  EXPECT_EQ(count_of(heat_map(map).text, "fill-opacity:0.000"), 2u);
  map.values = {{1, -0.5}, {0.25, INFINITY}};
  map.limit = 0.25;
  map.rows = {std::string(30, 'r')};  // longer than 24 letters: no more room than for those
  expect_parts(heat_map(map).text, {R"(<text x="188.0" y="14">key)", "<title>1, 0: 0.25<"});
}

TEST(ReportDrawings, WideMapsHaveNoNumbersAndFewerNames) {
  HeatMap map;
  const auto names = [&](std::size_t columns) {
    map.values = {std::vector<double>(columns, 0.5)};
    return heat_map(map).text;
  };
  EXPECT_EQ(count_of(names(16), "class=\"value\""), 16u);
  EXPECT_EQ(count_of(names(17), "class=\"value\""), 0u);
  EXPECT_EQ(count_of(names(40), "y=\"38.0\" text-anchor=\"middle\""), 40u);
  EXPECT_EQ(count_of(names(41), "y=\"38.0\" text-anchor=\"middle\""), 21u);  // every second
  map.values.assign(41, {1.0});
  EXPECT_EQ(count_of(heat_map(map).text, "text-anchor=\"end\""), 21u);
}

TEST(ReportDrawings, NumbersChangeTheirUnitAtItsEdge) {
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(10'000), "10.0 kB");
  EXPECT_EQ(bytes_text(100'000), "100 kB");
  EXPECT_EQ(bytes_text(2e15), "2000 TB");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1.00 k");
  EXPECT_EQ(count_text(124.4e6), "124 M");
  EXPECT_EQ(count_text(2.75e12), "2.75 T");
  EXPECT_EQ(signed_text(0.5, 1), "+0.5");
  EXPECT_EQ(signed_text(-0.04, 1), "0.0");
  EXPECT_EQ(duration_text(60), "1 min 00 s");
  EXPECT_EQ(duration_text(3599), "59 min 59 s");
  EXPECT_EQ(duration_text(3600), "1 h 00 min");
  EXPECT_EQ(duration_text(48 * 3600), "2 days 0 h");
}

}  // namespace
}  // namespace heddle::report
