#include "report/page/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>
#include <vector>

#include "heddle/error.h"

namespace heddle::report {

namespace {

struct Node {
  enum class Kind : std::uint8_t { row, letter, number, sign, text, fraction, root, script };
  Kind kind = Kind::row;
  std::string text = {};         // of letters, numbers, signs and texts
  std::vector<Node> parts = {};  // of rows; numerator and denominator; what is under a root
  std::vector<Node> below = {}, above = {};  // scripts: none or one each; parts has the base
  bool fixed = false;                        // a sign that keeps its size
};

using Kind = Node::Kind;

constexpr std::size_t kDeepest = 20;  // groups in groups
constexpr const char* kQuad = "\u2003";

class Parser {
 public:
  explicit Parser(std::string_view notation) : all_(notation) {}

  Node whole() {
    Node row = items('\0');
    if (at_ < all_.size()) wrong("the end", std::string(1, all_[at_]));
    return row;
  }

 private:
  [[noreturn]] void wrong(const std::string& expected, const std::string& got) const {
    fail(ErrorCode::invalid_argument, "formula", fmt::format("byte {} of \"{}\"", at_, all_),
         expected, got);
  }

  bool done() const { return at_ >= all_.size(); }
  void spaces() {
    while (!done() && all_[at_] == ' ') ++at_;
  }

  Node items(char end) {
    if (++depth_ > kDeepest) wrong("fewer groups in groups", "more than 20");
    Node row;
    for (spaces(); !done() && all_[at_] != '}'; spaces()) row.parts.push_back(item());
    if (end != '\0' && (done() || all_[at_] != end)) wrong("}", "the end");
    --depth_;
    return row;
  }

  Node group() {
    spaces();
    if (done() || all_[at_] != '{') wrong("{", done() ? "the end" : std::string(1, all_[at_]));
    ++at_;
    Node inside = items('}');
    ++at_;
    return inside;
  }

  Node item() {
    Node base = atom();
    Node script{.kind = Kind::script};
    for (spaces(); !done() && (all_[at_] == '_' || all_[at_] == '^'); spaces()) {
      std::vector<Node>& place = all_[at_] == '_' ? script.below : script.above;
      if (!place.empty()) wrong("one script of a kind", "two");
      ++at_;
      place.push_back(atom());
    }
    if (script.below.empty() && script.above.empty()) return base;
    script.parts.push_back(std::move(base));
    return script;
  }

  std::string taken(bool (*belongs)(char)) {
    const std::size_t first = at_;
    while (!done() && belongs(all_[at_])) ++at_;
    return std::string(all_.substr(first, at_ - first));
  }

  Node atom() {
    spaces();
    if (done()) wrong("a part of a formula", "the end");
    const char c = all_[at_];
    if (c == '{') return group();
    if (c == '_' || c == '^' || c == '}') wrong("a part of a formula", std::string(1, c));
    if (c == '"') return quoted();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0)
      return {Kind::number, taken([](char d) {
                return std::isdigit(static_cast<unsigned char>(d)) != 0 || d == '.';
              })};
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) return word();
    return character();
  }

  Node word() {
    std::string name =
        taken([](char d) { return std::isalpha(static_cast<unsigned char>(d)) != 0; });
    if (name == "sqrt") return {.kind = Kind::root, .parts = {group()}};
    if (name == "quad") return {Kind::text, kQuad};
    if (name == "sum") return {Kind::sign, "Σ"};
    if (name == "prod") return {Kind::sign, "Π"};
    if (name != "frac") return {Kind::letter, std::move(name)};
    Node fraction{.kind = Kind::fraction};
    fraction.parts.push_back(group());
    fraction.parts.push_back(group());
    return fraction;
  }

  Node quoted() {
    const std::size_t end = all_.find('"', at_ + 1);
    if (end == std::string_view::npos) wrong("a second quotation mark", "the end");
    Node text{Kind::text, std::string(all_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return text;
  }

  // One character of UTF-8: Greek letters are letters, all others signs.
  Node character() {
    const std::size_t first = at_++;
    while (!done() && (static_cast<unsigned char>(all_[at_]) & 0xC0U) == 0x80U) ++at_;
    std::string text(all_.substr(first, at_ - first));
    const auto lead = static_cast<unsigned char>(text[0]);
    const bool greek = lead == 0xCE || lead == 0xCF;
    return {greek && text != "Σ" && text != "Π" ? Kind::letter : Kind::sign,
            text == "-" ? "−" : std::move(text)};
  }

  std::string_view all_;
  std::size_t at_ = 0, depth_ = 0;
};

// ---- MathML ------------------------------------------------------------------------------------

bool is_big(const Node& node) {
  return node.kind == Kind::sign && (node.text == "Σ" || node.text == "Π");
}

std::string mathml(const Node& node);

bool is_tall(const Node& node) {
  const auto any = [](const std::vector<Node>& nodes) {
    return std::ranges::any_of(nodes, is_tall);
  };
  return node.kind == Kind::fraction || is_big(node) || any(node.parts);
}

// Brackets around what is no taller than a letter keep their size: browsers would fit them to the
// tallest part of the whole formula. `)` may have a script.
void fit_brackets(std::vector<Node>& row) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < row.size(); ++i) {
    Node& sign = row[i].kind == Kind::script ? row[i].parts[0] : row[i];
    if (sign.kind != Kind::sign) continue;
    if (sign.text == "(" || sign.text == "[") open.push_back(i);
    if (sign.text == "|" || sign.text == "‖") sign.fixed = true;
    if ((sign.text != ")" && sign.text != "]") || open.empty()) continue;
    const auto first = row.begin() + static_cast<std::ptrdiff_t>(open.back());
    sign.fixed = first->fixed =
        std::none_of(first + 1, row.begin() + static_cast<std::ptrdiff_t>(i), is_tall);
    open.pop_back();
  }
}

std::string row_of(const Node& node) {
  std::vector<Node> parts = node.parts;
  fit_brackets(parts);
  std::string out = "<mrow>";
  for (const Node& part : parts) out += mathml(part);
  return out + "</mrow>";
}

std::string script_of(const Node& node) {
  const bool big = is_big(node.parts[0]), low = !node.below.empty(), high = !node.above.empty();
  const std::string name = big ? (low && high ? "munderover"
                                  : low       ? "munder"
                                              : "mover")
                               : (low && high ? "msubsup"
                                  : low       ? "msub"
                                              : "msup");
  std::string out = "<" + name + ">" + mathml(node.parts[0]);
  for (const Node& part : node.below) out += mathml(part);
  for (const Node& part : node.above) out += mathml(part);
  return out + "</" + name + ">";
}

std::string mathml(const Node& node) {
  switch (node.kind) {
    case Kind::row: return row_of(node);
    case Kind::letter: return "<mi>" + escaped(node.text) + "</mi>";
    case Kind::number: return "<mn>" + escaped(node.text) + "</mn>";
    case Kind::text: return "<mtext>" + escaped(node.text) + "</mtext>";
    case Kind::fraction:
      return "<mfrac>" + mathml(node.parts[0]) + mathml(node.parts[1]) + "</mfrac>";
    case Kind::root: return "<msqrt>" + mathml(node.parts[0]) + "</msqrt>";
    case Kind::script: return script_of(node);
    case Kind::sign: break;
  }
  if (is_big(node)) return "<mo>" + std::string(node.text == "Σ" ? "∑" : "∏") + "</mo>";
  return (node.fixed ? "<mo stretchy=\"false\">" : "<mo>") + escaped(node.text) + "</mo>";
}

// ---- text --------------------------------------------------------------------------------------

constexpr std::array kSpaced = {"=", "≠", "+", "−", "·", "×", "<", ">",
                                "≤", "≥", "≈", "→", "∈", "~", "|"};
constexpr std::array kOpening = {"(", "[", "‖", "√", "Σ", "Π"};
constexpr std::array kClosing = {")", "]", "‖", ",", ";", ":", "…", "!"};

template <class List>
bool has(const List& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string line(const Node& node);

bool is_simple(const Node& node) {
  if (node.kind == Kind::row) return node.parts.size() == 1 && is_simple(node.parts[0]);
  return node.kind != Kind::fraction;
}

std::string enclosed(const Node& node) {
  return is_simple(node) ? line(node) : "(" + line(node) + ")";
}

std::string raised(const Node& node) {
  const std::string text = line(node);
  constexpr std::array<std::pair<const char*, const char*>, 4> kRaised = {
      {{"T", "ᵀ"}, {"2", "²"}, {"3", "³"}, {"−1", "⁻¹"}}};
  for (const auto& [plain, high] : kRaised)
    if (text == plain) return high;
  return is_simple(node) ? "^" + text : "^(" + text + ")";
}

std::string row_line(const Node& node) {
  std::string out;
  bool tight = true;  // nothing before that wants a space
  for (std::size_t i = 0; i < node.parts.size(); ++i) {
    const Node& part = node.parts[i];
    const std::string text = line(part);
    // A script of a bracket stands where the bracket does.
    const Node& base = part.kind == Kind::script ? part.parts[0] : part;
    const bool sign = part.kind == Kind::sign;
    const bool spaced = sign && has(kSpaced, text) && !tight;  // else a sign of what follows
    const bool slash = sign && text == "/";
    const bool closes = slash || (base.kind == Kind::sign && has(kClosing, base.text));
    // f(x), but W (x)
    const bool call =
        sign && (text == "(" || text == "[") && i > 0 &&
        (node.parts[i - 1].kind == Kind::letter || node.parts[i - 1].kind == Kind::script);
    if (!tight && !closes && !call && !out.ends_with(' ')) out += ' ';
    out += text;
    if (spaced || text == "," || text == ";") out += ' ';
    tight =
        slash || (sign && !spaced && !closes) || (sign && has(kOpening, text) && !closes) || spaced;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string line(const Node& node) {
  switch (node.kind) {
    case Kind::row: return row_line(node);
    case Kind::fraction: return enclosed(node.parts[0]) + "/" + enclosed(node.parts[1]);
    case Kind::root: return "√" + enclosed(node.parts[0]);
    case Kind::script: {
      std::string out = line(node.parts[0]);
      for (const Node& part : node.below)
        out += is_simple(part) ? "_" + line(part) : "_{" + line(part) + "}";
      for (const Node& part : node.above) out += raised(part);
      return out;
    }
    default: return node.text;
  }
}

}  // namespace

// Parts between wide spaces are set apart, so that a narrow page may put it into lines.
Html formula(std::string_view notation) {
  Node row = Parser(notation).whole();
  std::vector<Node> pieces(1);
  for (Node& part : row.parts) {
    if (part.kind == Kind::text && part.text == kQuad)
      pieces.emplace_back();
    else
      pieces.back().parts.push_back(std::move(part));
  }
  std::string out = "<div class=\"formula\">";
  for (const Node& piece : pieces) out += "<math display=\"block\">" + mathml(piece) + "</math>";
  return {out + "</div>\n"};
}

std::string formula_text(std::string_view notation) { return line(Parser(notation).whole()); }

}  // namespace heddle::report
