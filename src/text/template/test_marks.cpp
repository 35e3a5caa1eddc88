// Text of users stays told apart from text of the template, whatever the template does to it.
#include <gtest/gtest.h>

#include "text/template/test_support.h"

namespace heddle::text::chat {
namespace {

// Users' text in <...>.
std::string marked(const std::string& source, const std::string& context) {
  std::string result;
  for (const Piece& piece : rendered(source, context).pieces)
    result += piece.from_user ? "<" + piece.text + ">" : piece.text;
  return result;
}

const std::string kContext =
    R"({"c": " Ab,cd ", "l": ["x", "y"], "m": {"k": "v"}, "j": "{\"a\": \"b\"}"})";

TEST(ChatTemplateMarks, SurviveOperationsOnStrings) {
  EXPECT_EQ(marked("[{{ c }}]", kContext), "[< Ab,cd >]");
  EXPECT_EQ(marked("[{{ 'a' + c ~ 'b' }}]", kContext), "[a< Ab,cd >b]");
  EXPECT_EQ(marked("{{ c | trim | upper }}.{{ c.strip().lower() }}", kContext), "<AB,CD>.<ab,cd>");
  EXPECT_EQ(marked("{{ c[1:3] }}.{{ c[::-1] }}.{{ c[1] }}", kContext), "<Ab>.< dc,bA >.<A>");
  EXPECT_EQ(marked("{{ c.replace(',', '|') }}", kContext), "< Ab>|<cd >");
  EXPECT_EQ(marked("{{ c.split(',')[0] }}.{{ (c * 2) | trim }}", kContext), "< Ab>.<Ab,cd  Ab,cd>");
  EXPECT_EQ(marked("{% for x in c | trim %}{{ x }}.{% endfor %}", kContext),
            "<A>.<b>.<,>.<c>.<d>.");
  EXPECT_EQ(marked("{{ '{}!'.format(c) }}{{ c | indent(1, true) }}", kContext),
            "< Ab,cd >! < Ab,cd >");
}

TEST(ChatTemplateMarks, SurviveListsJsonAndBlocks) {
  EXPECT_EQ(marked("{{ l | join('-') }}", kContext), "<x>-<y>");
  EXPECT_EQ(marked("{{ l }}", kContext), "['<x>', '<y>']");
  EXPECT_EQ(marked("{{ m | tojson }}", kContext), "{\"<k>\": \"<v>\"}");
  EXPECT_EQ(marked("{{ (j | from_json).a }}", kContext), "<b>");
  EXPECT_EQ(marked("{% macro f(x) %}({{ x }}){% endmacro %}{{ f(l[0]) }}", kContext), "(<x>)");
  EXPECT_EQ(marked("{% set b %}({{ l[0] }}){% endset %}{% filter upper %}{{ b }}{% endfilter %}",
                   kContext),
            "(<X>)");
  EXPECT_EQ(marked("{{ '<|' ~ l[0] ~ '|>' }}", kContext), "<|<x>|>");
}

TEST(ChatTemplateMarks, EscapesOfUsersAreTheirs) {
  EXPECT_EQ(marked("{{ s | tojson }}", R"({"s": "a\"b"})"), "\"<a\\\"b>\"");
  EXPECT_EQ(marked("{{ '' | safe + s }}", R"({"s": "&"})"), "<&amp;>");
}

TEST(ChatTemplateMarks, DoNotChangeWhatIsEqual) {
  EXPECT_EQ(
      render("{{ r == 'user' }} {{ {'user': 1}[r] }} {{ r in ['user'] }}", R"({"r": "user"})"),
      "True 1 True");
}

TEST(MarkedText, SpansAreJoinedAndCut) {
  MarkedText text("ab", true);
  text.append("cd", true);
  text.append("ef");
  EXPECT_EQ(text.user_spans(), (std::vector<Span>{{0, 4}}));
  EXPECT_EQ(text.part(3, 6).user_spans(), (std::vector<Span>{{0, 1}}));
  EXPECT_TRUE(text.part(4, 6).user_spans().empty());
  EXPECT_TRUE(text.from_user(3, 5));
  EXPECT_FALSE(text.from_user(4, 6));
}

}  // namespace
}  // namespace heddle::text::chat
