// Byte-level BPE against the slow way: words by the rule written once more, merges found and
// applied by counting everything again each time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/runtime.h"
#include "text/bpe/bpe_trainer.h"
#include "text/bpe/byte_alphabet.h"
#include "text/bpe/merges.h"
#include "text/split/word_end.h"
#include "text/test_support.h"
#include "text/unicode.h"

namespace heddle::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = gpt2_word_end(text, at);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(bpe, words_by_gpt2s_rule) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words_of("we'll they've I'm can't 'S"),
            (Words{"we", "'ll", " they", "'ve", " I", "'m", " can", "'t", " '", "S"}));
  EXPECT_EQ(words_of("a  b   c"), (Words{"a", " ", " b", "  ", " c"}));
  EXPECT_EQ(words_of("x\ny\n\nz"), (Words{"x", "\n", "y", "\n", "\n", "z"}));
  EXPECT_EQ(words_of("x \n"), (Words{"x", " \n"}));
  EXPECT_EQ(words_of("a1b2 34.5!?"), (Words{"a", "1", "b", "2", " 34", ".", "5", "!?"}));
  EXPECT_EQ(words_of("Größe 中文²½ à"), (Words{"Größe", " 中文", "²½", " à"}));
  EXPECT_EQ(words_of("e\u0301x"), (Words{"e", "\u0301", "x"}));  // a mark is no letter
  EXPECT_EQ(words_of("a\u00A0b"), (Words{"a", "\u00A0", "b"}));
  EXPECT_EQ(words_of("a \u3000 b"), (Words{"a", " \u3000", " b"}));
  EXPECT_EQ(words_of("''s 'd'"), (Words{"''", "s", " '", "d", "'"}));
  EXPECT_EQ(words_of("a\xFF\xFE b"), (Words{"a", "\xFF\xFE", " b"}));
  EXPECT_EQ(words_of("'"), (Words{"'"}));
  EXPECT_EQ(words_of("'r"), (Words{"'", "r"}));
}

// The alternatives of the pattern tried one after the other, as a regular expression would.
std::size_t match_by_the_book(const std::vector<CharClass>& kinds, const std::string& ascii) {
  using enum CharClass;
  for (const std::string_view c : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (ascii.starts_with(c)) return c.size();
  const auto run = [&](std::size_t from, CharClass kind) {
    std::size_t end = from;
    while (end < kinds.size() && kinds[end] == kind) ++end;
    return end;
  };
  for (const CharClass kind : {letter, number, other}) {
    if (ascii[0] == ' ' && run(1, kind) > 1) return run(1, kind);
    if (run(0, kind) > 0) return run(0, kind);
  }
  const std::size_t spaces = run(0, space);
  for (std::size_t n = spaces; n > 0; --n)
    if (n == kinds.size() || kinds[n] == space) return n;
  return spaces;
}

RC_GTEST_PROP(bpe, words_equal_the_pattern, ()) {
  const auto tricky = rc::gen::element<std::int32_t>(' ', ' ', '\'', 's', 'r', 'e', 'l', 'v', '\n',
                                                     '1', '.', 0xA0, 0x3000, 0xE9, 0xB2, 0x4E2D);
  const auto points =
      *rc::gen::container<std::vector<std::int32_t>>(rc::gen::oneOf(tricky, code_points()));
  std::string text;
  for (const std::int32_t c : points) text += to_utf8(c);
  std::vector<std::string> expected;
  for (std::size_t at = 0; at < points.size();) {
    std::vector<CharClass> kinds;
    std::string ascii, word;
    for (std::size_t i = at; i < points.size(); ++i) {
      kinds.push_back(char_class(points[i]));
      ascii += points[i] < 128 ? static_cast<char>(points[i]) : '?';
    }
    const std::size_t length = match_by_the_book(kinds, ascii);
    for (std::size_t i = at; i < at + length; ++i) word += to_utf8(points[i]);
    expected.push_back(word);
    at += length;
  }
  RC_ASSERT(words_of(text) == expected);
}

// Cutting at any safe place changes no word.
TEST(bpe, safe_cuts) {
  const std::vector<std::string> parts = {" ",      "\n", "a",    "1",    ".",    "'s", "\u3000",
                                          "\u00A0", "é",  "\xE3", "\x80", "\xFF", "中", "\u2003"};
  std::mt19937 random(20240607);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
    const std::size_t from = random() % (text.size() + 1);
    const std::size_t cut = safe_cut(text, from);
    ASSERT_TRUE(cut >= from && cut <= text.size());
    std::vector<std::string> words = words_of(text.substr(0, cut));
    const std::vector<std::string> rest = words_of(text.substr(cut));
    words.insert(words.end(), rest.begin(), rest.end());
    ASSERT_EQ(words, words_of(text)) << readable(text) << " cut at " << cut;
  }
}

// --- training ---

using Word = std::pair<Ids, std::int64_t>;

void merge_everywhere(Ids& word, const Merge& rule) {
  Ids merged;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool here = word[i] == rule.left && i + 1 < word.size() && word[i + 1] == rule.right;
    merged.push_back(here ? rule.result : word[i]);
    if (here) ++i;
  }
  word = merged;
}

// The highest count, then the smallest pair of ids; merges that spell a known token share its id.
LearnedMerges merges_by_the_book(std::span<const WordCount> counts, std::size_t tokens) {
  LearnedMerges learned;
  std::map<std::string, std::int32_t> ids;
  for (const std::uint8_t byte : bytes_by_name()) {
    const std::string bytes(1, static_cast<char>(byte));
    ids[bytes] = static_cast<std::int32_t>(learned.tokens.size());
    learned.tokens.push_back(bytes);
  }
  std::vector<Word> words;
  for (const WordCount& w : counts) {
    words.push_back({{}, w.count});
    for (const char c : w.word) words.back().first.push_back(ids[std::string(1, c)]);
  }
  while (learned.tokens.size() < tokens) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> pairs;
    for (const auto& [word, count] : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += count;
    auto best = pairs.end();
    for (auto p = pairs.begin(); p != pairs.end(); ++p)
      if (p->second >= 2 && (best == pairs.end() || p->second > best->second)) best = p;
    if (best == pairs.end()) break;
    const auto [left, right] = best->first;
    const std::string bytes = learned.tokens[static_cast<std::size_t>(left)] +
                              learned.tokens[static_cast<std::size_t>(right)];
    const auto next = static_cast<std::int32_t>(learned.tokens.size());
    const auto [known, is_new] = ids.try_emplace(bytes, next);
    if (is_new) learned.tokens.push_back(bytes);
    learned.merges.push_back({left, right, known->second});
    for (auto& [word, count] : words) merge_everywhere(word, learned.merges.back());
  }
  return learned;
}

RC_GTEST_PROP(bpe, training_equals_counting_again, ()) {
  // Few letters: many ties, and runs of one letter.
  const auto letters = *rc::gen::inRange<char>(1, 4);
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(
      rc::gen::inRange<char>('a', static_cast<char>('a' + letters))));
  std::vector<WordCount> counts;
  for (const std::string& word : words) counts.push_back({word, *rc::gen::inRange(1, 4)});
  const LearnedMerges expected = merges_by_the_book(counts, 256 + 40);
  const LearnedMerges learned = learn_merges(counts, 256 + 40, {});
  RC_ASSERT(learned.merges == expected.merges);
  RC_ASSERT(learned.tokens == expected.tokens);
}

std::string some_text() {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    const unsigned word = static_cast<unsigned>(i) * 2654435761U >> 20;
    for (unsigned w = word; w != 0; w /= 5) text += "aehl\xC3"[w % 5];
    text += i % 7 == 0 ? ".\n" : " ";
  }
  return text;
}

TEST(bpe, vocabulary_is_what_was_asked_for_or_less) {
  const std::string text = some_text();
  for (const int size : {256, 257, 300, 600})
    EXPECT_EQ(trained("bpe:" + std::to_string(size), text)->vocabulary(), size);
  const auto small = trained("bpe:100000", "abab ab x y", {.end = true});
  EXPECT_EQ(small->vocabulary(), 258);  // ab comes three times, all else once
  EXPECT_EQ(small->token(256), "ab");
  EXPECT_EQ(small->end(), 257);
  EXPECT_EQ(trained("bpe:300", "")->vocabulary(), 256);
}

TEST(bpe, threads_and_order_of_texts_do_not_matter) {
  std::string text;
  while (text.size() < 5'000'000) text += some_text();
  const int threads_before = threads();
  std::vector<std::string> files;
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    files.push_back(trained("bpe:600", text)->to_json());
  }
  set_threads(threads_before);
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
  const std::size_t half = text.find('\n', text.size() / 2);
  const std::vector<std::string_view> parts = {std::string_view(text).substr(half),
                                               std::string_view(text).substr(0, half)};
  EXPECT_EQ(train_tokenizer(TokenizerSpec::parse("bpe:600", "test"), parts)->to_json(), files[0]);
}

TEST(bpe, progress_is_told_and_can_give_up) {
  const std::string text = some_text();
  const std::string_view view = text;
  const TokenizerSpec spec = TokenizerSpec::parse("bpe:800", "test");
  std::int64_t counted = 0, merged = 0;
  train_tokenizer(spec, {&view, 1}, {}, [&](const TrainingProgress& p) {
    (p.phase == TrainingProgress::Phase::counting ? counted : merged) = p.done;
    EXPECT_LE(p.done, p.total);
  });
  EXPECT_EQ(counted, static_cast<std::int64_t>(text.size()));
  EXPECT_GT(merged, 256);
  const auto give_up = [](const TrainingProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(train_tokenizer(spec, {&view, 1}, {}, give_up), std::runtime_error);
}

// --- encoding ---

Ids merged_by_the_book(Ids word, std::span<const Merge> merges) {
  while (true) {
    std::size_t best = word.size(), rank = merges.size();
    for (std::size_t i = 0; i + 1 < word.size(); ++i)
      for (std::size_t r = 0; r < rank; ++r)
        if (merges[r].left == word[i] && merges[r].right == word[i + 1]) {
          best = i;
          rank = r;
        }
    if (best == word.size()) return word;
    word[best] = merges[rank].result;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Rules that build on each other, in any order, on words both short and long.
TEST(bpe, merging_equals_scanning) {
  std::mt19937 random(20240607);
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<Merge> merges;
    std::set<std::pair<std::int32_t, std::int32_t>> known;
    std::int32_t next = 2;
    for (int i = below(40); i > 0; --i) {
      const Merge merge = {below(next), below(next), next};
      if (!known.insert({merge.left, merge.right}).second) continue;
      merges.push_back(merge);
      ++next;
    }
    if (round % 2 == 1) std::shuffle(merges.begin(), merges.end(), random);
    Ids word(static_cast<std::size_t>(round % 4 == 0 ? below(8) : below(120)));
    for (std::int32_t& id : word) id = below(2);
    const Ids expected = merged_by_the_book(word, merges);
    MergeTable(merges).apply(word);
    ASSERT_EQ(word, expected) << "round " << round;
  }
}

RC_GTEST_PROP(bpe, any_bytes_come_back, (std::string bytes)) {
  static const auto bpe = trained("bpe:600", some_text(), {.begin = true, .end = true});
  static const auto byte = trained("byte", "", {.pad = true});
  const std::string text = bytes + some_text().substr(0, *rc::gen::inRange(0, 200)) + "<s>" + bytes;
  for (const auto* tokenizer : {bpe.get(), byte.get()}) {
    RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == text);
    const Ids plain = tokenizer->encode(text, SpecialsInText::plain);
    RC_ASSERT(tokenizer->decode(plain, ShowSpecials::no) == text);
  }
}

// The cache gives what the merges give, also when words push each other out of it.
TEST(bpe, many_words_and_many_threads) {
  const auto tokenizer = trained("bpe:500", some_text());
  std::string text;
  for (int i = 0; i < 60000; ++i) text += " hea" + std::to_string(i * 7919) + "lal";
  const Ids first = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(first), text);
  std::vector<Ids> results(4);
  std::vector<std::jthread> workers;
  for (Ids& ids : results) workers.emplace_back([&] { ids = tokenizer->encode(text); });
  workers.clear();
  for (const Ids& ids : results) EXPECT_EQ(ids, first);
  Ids parts;  // without a cache to speak of
  for (const std::string& word : words_of(text)) {
    const Ids ids = Tokenizer::from_json(tokenizer->to_json(), "test")->encode(word);
    parts.insert(parts.end(), ids.begin(), ids.end());
    if (parts.size() > 300) break;
  }
  EXPECT_TRUE(std::equal(parts.begin(), parts.end(), first.begin()));
}

TEST(bpe, a_very_long_word_takes_no_time) {
  const std::string letters(1 << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = trained("bpe:270", letters + " " + letters);
  const Ids ids = tokenizer->encode(letters);
  EXPECT_EQ(tokenizer->decode(ids), letters);
  EXPECT_EQ(ids.size(), 1U << 6);  // 14 doublings
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(spaces + "x")), spaces + "x");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 20.0);  // one that is quadratic takes hours
}

}  // namespace
}  // namespace heddle::text
