#include <gtest/gtest.h>

#include "heddle/error.h"
#include "report/page/formula.h"

namespace heddle::report {
namespace {

std::string math(std::string_view notation) {
  const std::string html = formula(notation).text;
  const std::string begin = "<math display=\"block\"><mrow>", end = "</mrow></math></div>\n";
  const std::size_t at = html.find(begin) + begin.size();
  return html.substr(at, html.size() - end.size() - at);
}

TEST(Formula, IsMathML) {
  EXPECT_EQ(math("x"), "<mi>x</mi>");
  EXPECT_EQ(math("2.5 < β"), "<mn>2.5</mn><mo>&lt;</mo><mi>β</mi>");
  EXPECT_EQ(math("k^T W_s"), "<msup><mi>k</mi><mi>T</mi></msup><msub><mi>W</mi><mi>s</mi></msub>");
  EXPECT_EQ(math("x quad y"), "<mi>x</mi></mrow></math><math display=\"block\"><mrow><mi>y</mi>");
  EXPECT_EQ(math("x_i^2"), "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>");
  EXPECT_EQ(
      math("frac{1}{sqrt{d}}"),
      "<mfrac><mrow><mn>1</mn></mrow><mrow><msqrt><mrow><mi>d</mi></mrow></msqrt></mrow></mfrac>");
  EXPECT_EQ(math("sum_j a"), "<munder><mo>∑</mo><mi>j</mi></munder><mi>a</mi>");
  EXPECT_EQ(
      math("sum_{j=1}^n"),
      "<munderover><mo>∑</mo><mrow><mi>j</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>");
  EXPECT_EQ(math("\"if <\" - x"), "<mtext>if &lt;</mtext><mo>−</mo><mi>x</mi>");
}

TEST(Formula, BracketsAreAsTallAsWhatTheyEnclose) {
  const std::string fixed = "<mo stretchy=\"false\">";
  EXPECT_EQ(math("f(x)"), "<mi>f</mi>" + fixed + "(</mo><mi>x</mi>" + fixed + ")</mo>");
  // Tall is what stands between them, not beside them.
  EXPECT_EQ(math("(a)frac{1}{2}").find(fixed + "(</mo>"), 0U);
  EXPECT_EQ(math("(frac{1}{2})").find("<mo>(</mo>"), 0U);
  const std::string nested = math("[(a)+sum_j b]^T");
  EXPECT_EQ(nested.find("<mo>[</mo>" + fixed + "(</mo>"), 0U) << nested;
  EXPECT_NE(nested.find("<msup><mo>]</mo>"), std::string::npos) << nested;
  EXPECT_EQ(math("a|b"), "<mi>a</mi>" + fixed + "|</mo><mi>b</mi>");
  EXPECT_EQ(math(")x("), "<mo>)</mo><mi>x</mi><mo>(</mo>");
}

TEST(Formula, IsALineOfText) {
  EXPECT_EQ(formula_text("s = frac{k^T W_s q}{sqrt{d}}"), "s = (kᵀ W_s q)/√d");
  EXPECT_EQ(formula_text("frac{a}{b}"), "a/b");
  EXPECT_EQ(formula_text("m=2^{-8h/n}"), "m = 2^(−8 h/n)");
  EXPECT_EQ(formula_text("softmax(x_i+M_{i j})"), "softmax(x_i + M_{i j})");
  EXPECT_EQ(formula_text("p(x_t|h) (X W)^T quad y"), "p(x_t | h) (X W)ᵀ \u2003 y");
  EXPECT_EQ(formula_text("A^T A=I,B^{-1}"), "Aᵀ A = I, B⁻¹");
}

TEST(Formula, WhatIsWrongIsNamedWithItsPlace) {
  for (const char* bad : {"{x", "x}", "x^", "x^2^3", "frac{a}", "sqrt d", "_x", "\"open", "x__y"}) {
    try {
      formula(bad);
      ADD_FAILURE() << bad << " was taken";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("byte "), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(formula(std::string(50, '{')), Error);
}

}  // namespace
}  // namespace heddle::report
