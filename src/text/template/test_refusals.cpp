// Refusals with the names they use, and the limits.
#include <gtest/gtest.h>

#include <random>

#include "text/template/test_support.h"

namespace heddle::text::chat {
namespace {

void expect_refused(const std::string& source, const std::string& words,
                    const Limits& limits = {}) {
  const std::string message = refusal(source, R"({"s": "text", "l": [1, 2]})", limits);
  EXPECT_NE(message.find(words), std::string::npos) << source.substr(0, 80) << " -> " << message;
}

TEST(ChatTemplateRefusals, ConstructsOutsideOfTheSubsetByName) {
  for (const std::string tag : {"include 'x'", "import 'x' as y", "extends 'x'", "block b",
                                "call f()", "do x", "with a = 1", "autoescape true"})
    expect_refused("a\n{% " + tag + " %}",
                   "the tag " + tag.substr(0, tag.find(' ')) + " is not supported");
  expect_refused("{{ x | urlize }}", "line 1: the filter urlize is not supported");
  expect_refused("{% if false %}{{ x | groupby('a') }}{% endif %}", "the filter groupby");
  expect_refused("{{ x is sameas y }}", "the test sameas");
  expect_refused("{{ 2 ** 3 }}", "the operator **");
  expect_refused("{{ joiner() }}", "the name joiner");
  expect_refused("{{ f(*l) }}", "an argument with *");
  expect_refused("{% for x in l recursive %}{% endfor %}", "a recursive for");
  expect_refused("{% for x in l %}{% macro m() %}{% endmacro %}{% endfor %}",
                 "a macro inside of a loop");
  expect_refused("{{ s.title() }}", "the method title of a string");
  expect_refused("{{ '%s' % s }}", "formatting with %");
}

TEST(ChatTemplateRefusals, MistakesWithTheirLine) {
  expect_refused("\n\n{{ }}", "test, line 3: {{ }}; expected an expression");
  expect_refused("{% if x %}\n", "a block does not end; expected {% endif %}");
  expect_refused("{% endif %}", "expected one that is open; got 'endif'");
  expect_refused("{{ (1 }}", "brackets; expected ); got '}'");
  expect_refused("{{ 'a }}", "a string does not end");
  expect_refused("{# a", "a comment does not end");
  expect_refused("{% raw %}", "a raw block does not end");
  expect_refused("{{ 1", "a tag does not end");
  expect_refused("{{ 1 2 }}", "expected '}}'; got '2'");
  expect_refused("{{ a $ b }}", "got '$'");
  expect_refused("{% break %}", "a loop around it");
  expect_refused("{{ '\\ud800' }}", "an escape in a string");
  expect_refused("\xFF", "UTF-8");
}

TEST(ChatTemplateRefusals, ValuesThatDoNotGoTogether) {
  expect_refused("\n{{ 'a' + 1 }}", "line 2: the operator +");
  expect_refused("{{ x.y.z }}", "'x', which is not defined");
  expect_refused("{{ l.append(3) }}", "'append' of a list, which is not defined");
  expect_refused("{{ nothing() }}", "'nothing', which is not defined");
  expect_refused("{{ 1 // 0 }}", "no zero");
  expect_refused("{{ 9223372036854775807 + 1 }}", "64 bits");
  expect_refused("{{ -9223372036854775807 - 2 }}", "64 bits");
  expect_refused("{{ 1 < 'a' }}", "values that have an order");
  expect_refused("{% for x in 1 %}{% endfor %}", "a list, mapping or string to go through");
  expect_refused("{% set s.x = 1 %}", "a namespace before the dot");
  expect_refused("{% for a, b in [[1]] %}{% endfor %}", "2 values; got 1");
  expect_refused("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "at most 1; got 2");
  expect_refused("{{ x | tojson }}", "'x', which is not defined");
  expect_refused("{{ namespace(a=1) }}", "a namespace");
}

TEST(ChatTemplateLimits, NothingLoopsForEverOrFillsTheMemory) {
  expect_refused("{{ range(1000000000000) }}", "items of a list; expected at most 1000000");
  expect_refused("{{ 'ab' * 1000000000000 }}", "a repetition");
  expect_refused("{{ [0] * 1000000000000 }}", "a repetition");
  expect_refused("{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
                 "steps of the rendering");
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels of the evaluation");
  expect_refused(
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% "
      "endfor %}",
      "bytes of a string");
  expect_refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "levels");
  // Each list holds the one before twice: few items, and 2^99 of them when printed.
  expect_refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(90) %}{% set ns.l = [ns.l, ns.l] %}{% "
      "endfor %}{{ ns.l }}",
      "steps of the rendering");
  expect_refused("{% set s = 'x' * 1000000 %}{% for i in range(99) %}{{ s }}{% endfor %}",
                 "bytes of output");
  expect_refused("{% for i in range(200000) %}{% set n = namespace() %}{% endfor %}", "namespaces");
  expect_refused("{{ 1 | tojson(indent=1000000000000) }}", "bytes of a string");
  expect_refused("aaaa", "bytes of a chat template", Limits{.source_bytes = 3});
}

TEST(ChatTemplateLimits, Nesting) {
  const auto many = [](const std::string& text, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  const std::string levels = "levels of blocks and expressions";
  expect_refused("{{ " + many("(", 100000) + "1", "a tag does not end");
  expect_refused("{{ " + many("(", 10000) + "1" + many(")", 10000) + " }}", levels);
  expect_refused("{{ " + many("not ", 10000) + "1 }}", levels);
  expect_refused("{{ " + many("-", 10000) + "1 }}", levels);
  expect_refused("{{ 1" + many(" + 1", 10000) + " }}", levels);
  expect_refused("{{ x" + many(".x", 10000) + " }}", levels);
  expect_refused("{{ x" + many(" | trim", 10000) + " }}", levels);
  expect_refused(many("{% if x %}", 10000), levels);
  EXPECT_EQ(render("{{ 1" + many(" + 1", 100) + " }}"), "101");
}

// A namespace that holds itself is freed; the sanitizers' build tells.
TEST(ChatTemplateLimits, NamespacesThatHoldThemselves) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me[0].me is defined }}"),
            "True");
  EXPECT_EQ(
      render("{% for i in [1] %}{% set ns = namespace(l=loop) %}{{ ns.l.index }}{% endfor %}"),
      "1");
}

// Whatever becomes of a template, it ends with an Error or with a text.
TEST(ChatTemplateLimits, DamagedTemplates) {
  const std::string source =
      "{%- macro m(a, b=1) -%}{{ a[b:] | tojson(indent=2) }}{%- endmacro %}{% set ns = "
      "namespace(i=0) %}"
      "{% for k, v in d.items() if v is not none %}{% set ns.i = ns.i + 1 %}{{ loop.index ~ "
      "k.split('a')[0] }}"
      "{% if loop.last and not v is string %}{{ m([v, {'x': (1, 2.5)}]) }}{% elif k in s %}{% "
      "break %}{% endif %}"
      "{% endfor %}{# c #}{% raw %}{{ }}{% endraw %}{{ s | replace('e', 'é') | upper | "
      "default('x', true) }}";
  const Value context = read_json(
      R"({"s": "héllo", "d": {"a": 1, "ba": [1, {"c": "x"}], "e": null}})", "context", true);
  const std::string letters = "{}%#-+|.,:()[]'\"\\=~*/<>! \nabik019_\xC3\xA9";
  const Limits limits{.steps = 20000,
                      .work_bytes = 1 << 20,
                      .string_bytes = 1 << 16,
                      .output_bytes = 1 << 16,
                      .list_items = 1 << 12};
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int rendered_ones = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = source;
    for (std::size_t i = 0; i <= below(4); ++i) {
      const std::size_t at = below(damaged.size()), size = below(12);
      switch (below(3)) {
        case 0: damaged[at] = letters[below(letters.size())]; break;
        case 1: damaged.erase(at, size); break;
        default: damaged.insert(at, source.substr(below(source.size()), size)); break;
      }
    }
    try {
      const Rendered text =
          ChatTemplate::parse(damaged, "damaged", limits).render(context, fixed_time);
      EXPECT_LE(text.text().size(), limits.output_bytes);
      ++rendered_ones;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(rendered_ones, 100);  // most faults are refused, and some change what is written
}

}  // namespace
}  // namespace heddle::text::chat
