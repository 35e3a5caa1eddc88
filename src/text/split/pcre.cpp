#include "text/split/pcre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <memory>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

// Steps of one search. Patterns of real tokenizers need some dozens for each character of a word.
constexpr std::uint32_t kMatchLimit = 20'000'000;
constexpr std::uint32_t kHeapLimitKiB = 64 * 1024;
constexpr std::size_t kMaxPatternBytes = 65'536;

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

class Pcre final : public Pattern {
 public:
  Pcre(Code code, std::string pattern)
      : code_(std::move(code)),
        context_(pcre2_match_context_create(nullptr)),
        pattern_(std::move(pattern)) {
    pcre2_set_match_limit(context_.get(), kMatchLimit);
    pcre2_set_heap_limit(context_.get(), kHeapLimitKiB);
    // Without the compiler to machine code (another processor) it is only slower.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  std::vector<Match> find(std::string_view text) const override {
    std::vector<Match> matches;
    const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    for (std::size_t at = 0; at <= text.size();) {
      if (!search(text, at, data.get())) break;
      const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
      const Match match{ends[0], ends[1]};
      // A match that a look-ahead with \K turned around has no meaning as a word.
      if (match.end < match.begin || match.begin < at) break;
      matches.push_back(match);
      at = match.end;
      if (match.begin != match.end) continue;
      at += at < text.size() ? code_point_at(text, at).bytes : 1;
    }
    return matches;
  }

 private:
  bool search(std::string_view text, std::size_t at, pcre2_match_data* data) const {
    const auto* const bytes = reinterpret_cast<PCRE2_SPTR>(text.data());
    int found = pcre2_match(code_.get(), bytes, text.size(), at, 0, data, context_.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code_.get(), bytes, text.size(), at, PCRE2_NO_JIT, data, context_.get());
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0)
      fail(ErrorCode::invalid_argument, "text",
           "the tokenizer's pattern " + io::shown(pattern_) + " gives up at byte " +
               std::to_string(at),
           {}, message_of(found));
    return true;
  }

  Code code_;
  MatchContext context_;
  std::string pattern_;
};

// White_Space; and Alphabetic, marks, decimal numbers and connectors. Written to stand in a class.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kWordCharacters = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9})";

// The translation of \x, or nothing where both mean the same.
std::string escape_words(char x, bool in_class) {
  const auto set = [&](std::string_view members, bool negated) {
    if (in_class) return std::string(members);
    return (negated ? "[^" : "[") + std::string(members) + "]";
  };
  if (x == 's') return set(kSpaces, false);
  if (x == 'w') return set(kWordCharacters, false);
  if (x == 'S' && !in_class) return set(kSpaces, true);
  if (x == 'W' && !in_class) return set(kWordCharacters, true);
  return {};
}

}  // namespace

std::string pcre_words(std::string_view pattern, std::string_view where) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      const char next = pattern[++at];
      if (next == 'h' || next == 'H' || next == 'K' || next == 'C')
        io::fail_io(where, "not supported in a pattern", "no \\h, \\H, \\K or \\C",
                    io::shown(pattern));
      const std::string words = escape_words(next, in_class);
      out += words.empty() ? std::string{c, next} : words;
      continue;
    }
    if (in_class && pattern.substr(at, 2) == "&&")
      io::fail_io(where, "not supported in a pattern", "no intersection of classes (&&)",
                  io::shown(pattern));
    if (in_class && c == '[' && pattern.substr(at, 2) != "[:")
      io::fail_io(where, "not supported in a pattern", "no class inside of a class",
                  io::shown(pattern));
    if (in_class && pattern.substr(at, 2) == "[:") {  // [:alpha:], with its own bracket
      const std::size_t end = pattern.find(":]", at);
      if (end != std::string_view::npos) {
        out += pattern.substr(at, end + 2 - at);
        at = end + 1;
        continue;
      }
    }
    out += c;
    if (!in_class && c == '[') {
      in_class = true;
      if (pattern.substr(at + 1, 1) == "^") out += pattern[++at];
      if (pattern.substr(at + 1, 1) == "]") {  // a bracket that comes first is a member
        out += "\\]";
        ++at;
      }
    } else if (in_class && c == ']') {
      in_class = false;
    }
  }
  return out;
}

PatternPtr pcre_pattern(std::string_view pattern, std::string_view where) {
  if (pattern.empty() || pattern.size() > kMaxPatternBytes)
    io::fail_io(where, "not a pattern", "from 1 to " + std::to_string(kMaxPatternBytes) + " bytes",
                std::to_string(pattern.size()));
  const std::string words = pcre_words(pattern, where);
  // Lines begin and end everywhere, as Oniguruma has it in tokenizers.
  constexpr std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE place = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(words.data()), words.size(), options, &error,
                          &place, nullptr));
  if (!code) io::fail_io(where, "not a pattern", message_of(error), io::shown(pattern));
  return std::make_unique<Pcre>(std::move(code), std::string(pattern));
}

}  // namespace heddle::text
