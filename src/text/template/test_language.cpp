// Tags, white space, variables and expressions, with results worked out by hand.
#include <gtest/gtest.h>

#include "text/template/test_support.h"

namespace heddle::text::chat {
namespace {

TEST(ChatTemplate, WhiteSpaceAroundTags) {
  EXPECT_EQ(render("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(render("a  {%- if true -%}  b  {%- endif -%}  c"), "abc");
  EXPECT_EQ(render("a\n  {%+ if true %}b{% endif +%}\nc"), "a\n  b\nc");
  EXPECT_EQ(render("a  {{- 1 -}}  b {{ 2 }}\n"), "a1b 2");
  EXPECT_EQ(render("x {% set a = 1 %} y"), "x  y");  // text before the tag: nothing to strip
  EXPECT_EQ(render("a\r\nb\rc\n\n"), "a\nb\nc\n");
  EXPECT_EQ(render("a\xC2\xA0 {{- 1 }}"), "a1");  // a space that does not break is a space
}

TEST(ChatTemplate, CommentsAndRawBlocks) {
  EXPECT_EQ(render("a{# {{ no }} #}b"), "ab");
  EXPECT_EQ(render("a {#- x -#} b\n  {# y #}\nc"), "ab\nc");
  EXPECT_EQ(render("{#-#}a"), "a");
  EXPECT_EQ(render("{% raw %}{{ x }}{% y {# #}{% endraw %}!"), "{{ x }}{% y {# #}!");
  EXPECT_EQ(render("a\n {%- raw -%}  {{ x }}  {%- endraw %}\nb"), "a{{ x }}b");
}

TEST(ChatTemplate, EscapesInStrings) {
  EXPECT_EQ(render(R"({{ 'a\n\t\'\"\\' }})"), "a\n\t'\"\\");
  EXPECT_EQ(render(R"({{ "\x41\u00e9\U0001F600\101\d" }})"),
            "A\xC3\xA9\xF0\x9F\x98\x80"
            "A\\d");
  EXPECT_EQ(render("{{ 'a' 'b' \"c\" }}"), "abc");
}

TEST(ChatTemplate, Branches) {
  const std::string source =
      "{% if x == 1 %}one{% elif x == 2 %}two{% elif x %}many{% else %}none{% endif %}";
  EXPECT_EQ(render(source, R"({"x": 1})"), "one");
  EXPECT_EQ(render(source, R"({"x": 2})"), "two");
  EXPECT_EQ(render(source, R"({"x": [0]})"), "many");
  EXPECT_EQ(render(source, R"({"x": []})"), "none");
  EXPECT_EQ(render("{{ 'a' if x }}|{{ 'a' if x else 'b' }}"), "|b");
}

TEST(ChatTemplate, TruthIsPythons) {
  EXPECT_EQ(
      render("{% for v in values %}{{ 1 if v else 0 }}{% endfor %}",
             R"({"values": [null, false, true, 0, 1, 0.0, 0.5, "", "0", [], [0], {}, {"a": 0}]})"),
      "0010101010101");
}

TEST(ChatTemplate, Loops) {
  EXPECT_EQ(render("{% for i in [1, 2, 3] %}{{ i }}{{ ',' if not loop.last }}{% endfor %}"),
            "1,2,3");
  EXPECT_EQ(render("{% for i in 'ab' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                   "{{ loop.revindex0 }}{{ loop.first }}{{ loop.length }}{{ i }};{% endfor %}"),
            "1021True2a;2110False2b;");
  EXPECT_EQ(
      render("{% for i in [1,2,3] %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}"),
      "<1>2 1<2>3 2<3> ");
  EXPECT_EQ(render("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}"),
            "a=1;b=2;");
  EXPECT_EQ(render("{% for i in range(6) if i % 2 %}{{ i }}/{{ loop.length }} {% endfor %}"),
            "1/3 3/3 5/3 ");
  EXPECT_EQ(render("{% for i in [] %}x{% else %}nothing{% endfor %}"), "nothing");
  EXPECT_EQ(render("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                   "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "023");
  EXPECT_EQ(render("{% for i in missing %}x{% endfor %}"), "");
}

TEST(ChatTemplate, VariablesOfLoopsEndWithThem) {
  EXPECT_EQ(
      render(
          "{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"),
      "01020");
  EXPECT_EQ(render("{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}"
                   "{% endfor %}{{ ns.x }}"),
            "3");
  EXPECT_EQ(render("{% if true %}{% set x = 5 %}{% endif %}{{ x }}"), "5");
}

TEST(ChatTemplate, Assignments) {
  EXPECT_EQ(render("{% set a, b = 1, 'x' %}{{ b }}{{ a }}"), "x1");
  EXPECT_EQ(render("{% set t %} a {{ 1 }} {% endset %}[{{ t }}]"), "[ a 1 ]");
  EXPECT_EQ(render("{% set t | trim | upper %} a {% endset %}[{{ t }}]"), "[A]");
  EXPECT_EQ(render("{% filter trim | upper %}  ab {% endfilter %}|"), "AB|");
  EXPECT_EQ(render("{% generation %}text{% endgeneration %}"), "text");
}

TEST(ChatTemplate, Macros) {
  EXPECT_EQ(render("{% macro m(a, b=a ~ '!', c='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}"
                   "{{ m(1) }} {{ m(1, 2) }} {{ m(1, c=3) }} {{ m() }}"),
            "11!z 12z 11!3 !z");
  EXPECT_EQ(render("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}"
                   "{{ f(3) }}"),
            "3210");
  EXPECT_EQ(render("{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}"), "1");
}

TEST(ChatTemplate, Operators) {
  EXPECT_EQ(
      render("{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }}"),
      "3 3 -4 2 3.5 2.0");
  EXPECT_EQ(render("{{ 'a' + 'b' ~ 1 ~ none }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ 2 * [0] }}"),
            "ab1None abab [1, 2] [0, 0]");
  EXPECT_EQ(render("{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' in 'cat' }} {{ 2 not in [1] }} {{ 'k' "
                   "in {'k': 1} }}"),
            "True False True True True");
  EXPECT_EQ(render("{{ 0 or 'x' }} {{ '' and 1 }}| {{ not 1 }} {{ 1 == 1.0 }} {{ true == 1 }}"),
            "x | False True True");
  EXPECT_EQ(render("{{ (1, 2) == [1, 2] }} {{ [1, 2] < [1, 3] }} {{ {'a': 1} == {'a': 1.0} }}"),
            "False True True");
  EXPECT_EQ(render("{{ -2 | abs }} {{ 1 + 'ab' | length }} {{ not x is defined }}"), "2 3 True");
}

TEST(ChatTemplate, SubscriptsAndSlices) {
  const std::string list = R"({"l": [0, 1, 2, 3, 4], "s": "aé世d"})";
  EXPECT_EQ(render("{{ l[1] }} {{ l[-1] }} {{ l[9] }} {{ l.2 }}", list), "1 4  2");
  EXPECT_EQ(render("{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[3:0:-2] }} {{ l[-99:99] }}", list),
            "[1, 2, 3, 4] [0, 1, 2, 3] [4, 3, 2, 1, 0] [3, 1] [0, 1, 2, 3, 4]");
  EXPECT_EQ(render("{{ s[1] }} {{ s[1:3] }} {{ s[::-1] }} {{ s | length }}", list),
            "é é世 d世éa 4");
}

// message.items is the method and message['items'] the key, as in Python.
TEST(ChatTemplate, MethodsBeforeKeysAfterADot) {
  const std::string map = R"({"m": {"items": 1, "x": 2}})";
  EXPECT_EQ(
      render("{{ m['items'] }} {{ m.x }} {% for k, v in m.items() %}{{ k }}{% endfor %}", map),
      "1 2 itemsx");
  EXPECT_EQ(
      render("{{ m.items is callable }} {{ m['get'] is defined }} {{ m['no'] is defined }}", map),
      "True True False");
}

}  // namespace
}  // namespace heddle::text::chat
