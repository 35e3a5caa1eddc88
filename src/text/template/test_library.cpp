// Filters, tests (after `is`), methods, functions, and values as text, worked out by hand.
#include <gtest/gtest.h>

#include "text/template/test_support.h"

namespace heddle::text::chat {
namespace {

TEST(ChatTemplate, ValuesAsPythonPrintsThem) {
  EXPECT_EQ(
      render("{{ v }}", R"({"v": [null, true, 1, 1.0, 1e16, 0.00001, "a'b", "\n\"'", {"k": []}]})"),
      R"([None, True, 1, 1.0, 1e+16, 1e-05, "a'b", '\n"\'', {'k': []}])");
  EXPECT_EQ(render("{{ (1,) }}{{ () }}{{ {'a': 1}.items() }}"), "(1,)()dict_items([('a', 1)])");
  EXPECT_EQ(render("{{ ['\\x00\\u200b\xC3\xA9'] }}"), "['\\x00\\u200b\xC3\xA9']");
}

TEST(ChatTemplate, ToJson) {
  const std::string context =
      R"({"v": {"b": [1, 2.5, "é\u0001<\"&'/"], "a": {}, "n": null, "t": [], "1": true}})";
  EXPECT_EQ(render("{{ v | tojson }}", context),
            R"({"b": [1, 2.5, "é\u0001<\"&'/"], "a": {}, "n": null, "t": [], "1": true})");
  EXPECT_EQ(render("{{ {'b': [1, {}], 'a': 'é😀'} | tojson(indent=2, ensure_ascii=true) }}"),
            "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": \"\\u00e9\\ud83d\\ude00\"\n}");
  EXPECT_EQ(render("{{ {'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'), sort_keys=true) }}"),
            R"({"a":[1,2],"b":1})");
  EXPECT_EQ(render("{{ {1: 2, none: 3, true: 4} | tojson }}"), R"({"1": 4, "null": 3})");
  EXPECT_EQ(render("{{ ('{\"z\": 1, \"a\": [2]}' | from_json) | tojson }}"),
            R"({"z": 1, "a": [2]})");
}

TEST(ChatTemplate, FiltersOfStrings) {
  EXPECT_EQ(render("[{{ ' a ' | trim }}][{{ 'xax' | trim('x') }}][{{ 'straße' | upper }}][{{ 'ÀB' "
                   "| lower }}]"),
            "[a][a][STRASSE][àb]");
  EXPECT_EQ(render("{{ 'aXbX' | replace('X', '-') }} {{ 'aXbX' | replace('X', '-', 1) }} {{ "
                   "'hELLO' | capitalize }}"),
            "a-b- a-bX Hello");
  EXPECT_EQ(render("{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb' | indent(2, first=true) }}"),
            "a\n  b\n\n  c|  a\n  b");
  EXPECT_EQ(render("{{ '42.9' | int }} {{ 'x' | int(7) }} {{ ' 5 ' | int }} {{ '1.5' | float }} {{ "
                   "3 | string ~ 4 }}"),
            "42 7 5 1.5 34");
  EXPECT_EQ(render("{{ x | default('d') }} {{ '' | default('d') }}| {{ '' | default('d', true) }}"),
            "d | d");
}

// `safe` makes + escape the other side, which one of the real templates relies on.
TEST(ChatTemplate, SafeStringsEscapeWhatTheyAreAddedTo) {
  EXPECT_EQ(
      render("{{ '<a>' | safe + '<b>' }} {{ '<b>' + '<a>' | safe }} {{ '<a>' | safe ~ '<b>' }}"),
      "<a>&lt;b&gt; &lt;b&gt;<a> <a><b>");
}

TEST(ChatTemplate, FiltersOfLists) {
  const std::string context =
      R"({"m": [{"r": "u", "n": 2}, {"r": "A", "n": 1}, {"r": "u"}], "l": [3, 1, 2, 1]})";
  EXPECT_EQ(render("{{ m | selectattr('r', 'equalto', 'u') | list | length }} {{ m | "
                   "rejectattr('n', 'defined') | list }}",
                   context),
            "2 [{'r': 'u'}]");
  EXPECT_EQ(render("{{ m | map(attribute='r') | join(',') }} {{ m | sort(attribute='r') | "
                   "map(attribute='r') | list }}",
                   context),
            "u,A,u ['A', 'u', 'u']");
  EXPECT_EQ(render("{{ l | sort }} {{ l | unique | list }} {{ l | min }} {{ l | max }} {{ l | "
                   "first }} {{ l | last }}",
                   context),
            "[1, 1, 2, 3] [3, 1, 2] 1 3 3 1");
  EXPECT_EQ(render("{{ l | reject('equalto', 1) | list }} {{ ['a'] | map('upper') | list }} {{ l | "
                   "sort(reverse=true) }}",
                   context),
            "[3, 2] ['A'] [3, 2, 1, 1]");
  EXPECT_EQ(render("{{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1} | items | list }}"),
            "[('A', 2), ('b', 1)] [('b', 1)]");
}

// Filters that give their items once are true, have no length, and are empty the second time.
TEST(ChatTemplate, WhatFiltersGiveIsReadOnce) {
  EXPECT_EQ(render("{% set g = [1] | select %}{{ g | list }}{{ g | list }}{{ 1 if [] | select }}"),
            "[1][]1");
  EXPECT_NE(refusal("{{ [1] | select | length }}"), "");
  EXPECT_EQ(render("{{ none | select('string') | list }}{{ none | map('upper') | list }}"), "[][]");
  EXPECT_NE(refusal("{{ 1 | select('string') | list }}"), "");
  EXPECT_NE(refusal("{{ [1] | map('string') | tojson }}"), "");
}

TEST(ChatTemplate, Predicates) {
  EXPECT_EQ(render("{{ x is defined }}{{ x is undefined }}{{ none is none }}{{ 'a' is string }}{{ "
                   "{} is mapping }}"),
            "FalseTrueTrueTrueTrue");
  EXPECT_EQ(render("{{ 'a' is iterable }}{{ 1 is iterable }}{{ {} is sequence }}{{ [] is not "
                   "string }}{{ {}.items() is sequence }}"),
            "TrueFalseTrueTrueFalse");
  EXPECT_EQ(render("{{ true is boolean }}{{ 1 is true }}{{ false is false }}{{ true is number }}{{ "
                   "true is integer }}{{ 1.0 is float }}"),
            "TrueFalseTrueTrueFalseTrue");
  EXPECT_EQ(render("{{ 3 is odd }}{{ 3 is even }}{{ 6 is divisibleby 3 }}{{ 1 is in [1] }}{{ 2 is "
                   "eq 2 }}{{ 1 is gt(2) }}"),
            "TrueFalseTrueTrueTrueFalse");
}

TEST(ChatTemplate, Methods) {
  EXPECT_EQ(
      render("{{ ' a b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a--b'.split('--')[-1] }}"),
      "['a', 'b'] ['a', 'b,c'] b");
  EXPECT_EQ(render("[{{ ' x '.strip() }}{{ '\n x'.lstrip('\n') }}{{ 'xyy'.rstrip('y') }}]"),
            "[x xx]");
  EXPECT_EQ(render("{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ "
                   "'aba'.replace('a', 'x', 1) }}"),
            "True True xba");
  EXPECT_EQ(render("{{ '<{}|{1}|{k}|{{}}>'.format(1, 'b', k=2) }} {{ 'é1é'.find('1') }} {{ "
                   "'aa'.count('a') }}"),
            "<1|b|2|{}> 1 2");
  EXPECT_EQ(render("{{ {'a': 1}.get('a') }} {{ {}.get('a') }} {{ {}.get('a', 2) }} {{ "
                   "','.join({'x': 1, 'y': 2}.keys()) }}"),
            "1 None 2 x,y");
}

TEST(ChatTemplate, Functions) {
  EXPECT_EQ(
      render("{{ range(3) | list }} {{ range(1, 7, 3) | list }} {{ range(3, 0, -1) | list }}"),
      "[0, 1, 2] [1, 4] [3, 2, 1]");
  EXPECT_EQ(
      render("{{ strftime_now('%d %b %Y') }}{{ strftime_now('') }} {{ strftime_now is defined }}"),
      "04 Jul 2026 True");
  const std::string refused = refusal("\n{{ raise_exception('roles ' ~ 1) }}");
  EXPECT_NE(refused.find("test, line 2"), std::string::npos) << refused;
  EXPECT_NE(refused.find("roles 1"), std::string::npos) << refused;
}

}  // namespace
}  // namespace heddle::text::chat
