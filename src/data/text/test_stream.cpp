// Texts that are streamed are the same tokens as texts that are read whole.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/test_support.h"
#include "data/text/encode_stream.h"
#include "data/text/encode_text.h"
#include "data/token_file/token_file.h"
#include "io/files/unnamed_file.h"
#include "text/train.h"

namespace heddle::data {
namespace {

namespace fs = std::filesystem;

struct Got {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> documents;
  std::int64_t unknown = 0;
  bool operator==(const Got&) const = default;
};

Got whole_text(const Codec& codec, const JoinedText& text, Documents border) {
  const EncodedText encoded = encode_text(codec, text, text.text, border);
  Got got{std::vector<std::int32_t>(static_cast<std::size_t>(encoded.size())), encoded.documents,
          encoded.unknown};
  encoded.tokens.copy(0, encoded.size(), got.tokens.data());
  return got;
}

Got streamed(const Codec& codec, const StreamedFiles& files, Documents border, std::size_t bytes) {
  TextShares shares(files, {.documents = border, .cuts = cuts_for(codec), .bytes = bytes});
  Got got;
  got.unknown =
      encode_stream(codec, shares, [&](std::span<const std::int32_t> tokens, bool begins) {
        if (begins) got.documents.push_back(static_cast<std::int64_t>(got.tokens.size()));
        got.tokens.insert(got.tokens.end(), tokens.begin(), tokens.end());
      });
  return got;
}

Codec codec_of(const std::string& spec, const std::string& text,
               text::SpecialsInText specials = text::SpecialsInText::plain) {
  const std::vector<std::string_view> texts = {text};
  text::SpecialTokens wanted;
  wanted.unknown = spec == "word" || spec == "char";
  CodecParts parts;
  parts.source = text::train_tokenizer(text::TokenizerSpec::parse(spec, "test"), texts, wanted);
  if (specials == text::SpecialsInText::recognised)
    parts.source = text::Tokenizer::from_json(parts.source->to_json(), "test");
  parts.length = 8;
  parts.specials = specials;
  return Codec(std::move(parts));
}

constexpr std::array kBorders = {Documents::none, Documents::line, Documents::blank_line,
                                 Documents::file};

std::string drawn(std::size_t most) {
  static const std::vector<std::string> kParts = {"a",  "word",  " ",    " ",  "\n", "\n\n", "\r\n",
                                                  "\t", "Grüße", "字。", "  ", "12", "'s",   " \n"};
  const auto parts =
      *rc::gen::resize(static_cast<int>(most),
                       rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts)));
  std::string text;
  for (const std::string& part : parts) text += part;
  return text.empty() ? "x" : text;
}

RC_GTEST_PROP(DataStream, IsTheTokensOfTheWholeForPiecesOfAnySize, ()) {
  const io::TempDir dir;
  const std::string first = drawn(60), second = drawn(60);
  const bool packed = *rc::gen::arbitrary<bool>();
  const bool marked = *rc::gen::arbitrary<bool>();
  dir.file("a", (marked ? "\xef\xbb\xbf" : "") + first);
  dir.file("b", packed ? io::gzipped(second) : second);
  const StreamedFiles files{.paths = {dir.file("a"), dir.file("b")}};
  JoinedText whole;
  whole.text = first + second;
  whole.parts = {{0, files.paths[0]}, {first.size(), files.paths[1]}};
  RC_ASSERT(joined_bytes(files) == whole.text.size());
  const std::size_t bytes = *rc::gen::inRange<std::size_t>(1, 40);
  for (const char* spec : {"char", "byte", "word", "bpe:290"}) {
    for (const auto specials : {text::SpecialsInText::plain, text::SpecialsInText::recognised}) {
      const Codec codec = codec_of(spec, first + "word word Grüße Grüße", specials);
      for (const Documents border : kBorders)
        RC_ASSERT(streamed(codec, files, border, bytes) == whole_text(codec, whole, border));
    }
  }
}

// What looks at any distance is one piece, with its documents apart all the same.
RC_GTEST_PROP(DataStream, TokenizersThatCannotBeCutReadWholeTextsOrDocuments, ()) {
  static const auto tokenizer = [] {
    const Codec own = codec_of("bpe:290", "word word Grüße Grüße");
    nlohmann::json json = nlohmann::json::parse(own.source().to_json());
    json["normalizer"] = {{"type", "NFC"}};
    return std::shared_ptr<const text::Tokenizer>(text::Tokenizer::from_json(json.dump(), "test"));
  }();
  const Codec codec = *Codec::for_language(tokenizer, 8);
  RC_ASSERT(cuts_for(codec) == text::Cuts::nowhere);
  const io::TempDir dir;
  JoinedText whole;
  whole.text = drawn(60);
  whole.parts = {{0, dir.file("a", whole.text)}};
  const StreamedFiles files{.paths = {dir.file("a")}};
  for (const Documents border : kBorders)
    RC_ASSERT(streamed(codec, files, border, 3) == whole_text(codec, whole, border));
}

RC_GTEST_PROP(DataStream, TrainsTheSameTokenizers, ()) {
  const io::TempDir dir;
  const std::string text = drawn(200);
  const StreamedFiles files{.paths = {dir.file("a", text)}};
  const std::size_t bytes = *rc::gen::inRange<std::size_t>(1, 40);
  for (const char* spec : {"char", "word:1", "bpe:300"}) {
    const auto parsed = text::TokenizerSpec::parse(spec, "test");
    const std::vector<std::string_view> texts = {text};
    ShareOptions options;
    options.cuts = parsed.kind == text::TokenizerSpec::Kind::character ? text::Cuts::characters
                                                                       : text::Cuts::white_space;
    options.bytes = bytes;
    text::SpecialTokens specials;
    specials.end = true;
    RC_ASSERT(text::train_on_pieces(parsed, pieces_of(files, options), specials)->to_json() ==
              text::train_tokenizer(parsed, texts, specials)->to_json());
  }
}

std::string big_text() {
  std::string text;
  for (int i = 0; text.size() < 700000; ++i)
    text += "line " + std::to_string(i * 7919 % 1000) + (i % 3 == 0 ? " Grüße.\n" : " and\n") +
            (i % 17 == 0 ? "\n" : "");
  return text;
}

// Every batch of every split, bit by bit; and what is told of them.
void expect_alike(const Sample& sample, const std::string& folder) {
  SCOPED_TRACE(sample.name + " " + sample.config.tokenizer);
  Sample with_files = sample;
  with_files.config.token_folder = folder;
  const auto plain = sample.open(), filed = with_files.open();
  EXPECT_EQ(plain->codec().source().to_json(), filed->codec().source().to_json());
  EXPECT_EQ(plain->epoch_steps(7), filed->epoch_steps(7));
  for (const std::int64_t step : {0, 1, 5, 99, 1000})
    ASSERT_EQ(bytes_of(plain->training_batch(step, 7, 3)),
              bytes_of(filed->training_batch(step, 7, 3)));
  for (const Split split : {Split::validation, Split::test}) {
    ASSERT_EQ(plain->has(split), filed->has(split));
    if (!plain->has(split)) continue;
    ASSERT_EQ(plain->batches(split, 5), filed->batches(split, 5));
    for (std::int64_t i = 0; i < std::min<std::int64_t>(plain->batches(split, 5), 40); ++i)
      ASSERT_EQ(bytes_of(plain->batch(split, i, 5)), bytes_of(filed->batch(split, i, 5)));
  }
  EXPECT_TRUE(filed->summary().starts_with(plain->summary())) << filed->summary();
  EXPECT_NE(filed->summary().find(folder), std::string::npos);
}

TEST(DataStream, ATokenFileGivesTheSameBatches) {
  const SampleData files;
  files.file("big.txt", big_text());
  files.file("other.txt.gz", io::gzipped("one line\nfor the test\n" + big_text().substr(0, 5000)));
  for (const char* tokenizer : {"char", "byte", "bpe:300", "word"}) {
    for (const Documents border : kBorders) {
      Sample sample = files.language(tokenizer);
      sample.config.training.text = {"big.txt", "text.txt"};
      sample.config.test.text = {"other.txt.gz"};
      sample.config.documents = border;
      expect_alike(sample, files.file("tokens"));
      sample.config.validation_share = {};
      sample.config.validation.text = {"text.txt", "other.txt.gz"};
      expect_alike(sample, files.file("tokens"));
    }
  }
  expect_alike(files.masked(), files.file("tokens"));
}

TEST(DataStream, TakesNoMemoryForTokens) {
  const SampleData files;
  files.file("big.txt", big_text());
  Sample sample = files.language("byte");
  sample.config.training.text = {"big.txt"};
  EXPECT_GT(sample.open()->bytes(), 700000);
  sample.config.token_folder = files.file("tokens");
  EXPECT_LT(sample.open()->bytes(), 1000);
}

std::vector<fs::path> token_files(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".tokens") found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

struct Folder {
  SampleData files;
  Sample sample = files.language("byte");
  std::string folder = files.file("tokens");

  Folder() {
    set_age("text.txt");
    sample.config.token_folder = folder;
  }
  // As if it had been written an hour ago.
  void set_age(const std::string& name) const {
    fs::last_write_time(files.file(name), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  // The phases that opening goes through.
  std::string open() const {
    std::string phases;
    OpenOptions options;
    options.reading = [&phases](const ReadingProgress& p) {
      EXPECT_LE(p.done, p.total);
      const char phase = "cmtw"[static_cast<int>(p.phase)];
      if (phases.empty() || phases.back() != phase) phases += phase;
    };
    sample.open(options);
    return phases;
  }
};

TEST(DataStream, WritesOnceAndAnewWhenTheTextOrTheTokenizerIsAnother) {
  Folder f;
  EXPECT_EQ(f.open(), "t");
  EXPECT_EQ(token_files(f.folder).size(), 2u);  // training, and its held-out end
  EXPECT_EQ(f.open(), "");
  fs::last_write_time(f.files.file("text.txt"), fs::file_time_type::clock::now());
  EXPECT_EQ(f.open(), "");  // its content is what it was
  std::string text = io::slurp(f.files.file("text.txt"));
  text[5] = '#';
  f.files.file("text.txt", text);
  EXPECT_EQ(f.open(), "t");
  EXPECT_EQ(token_files(f.folder).size(), 2u);  // in place of the old ones
  f.sample.config.tokenizer = "bpe:280";
  EXPECT_EQ(f.open(), "ct");
  EXPECT_EQ(token_files(f.folder).size(), 4u);
  f.sample.config.validation_share = 0.3;
  EXPECT_EQ(f.open(), "ct");
  EXPECT_EQ(token_files(f.folder).size(), 6u);
  f.sample.config.documents = Documents::line;
  EXPECT_EQ(f.open(), "ct");
  EXPECT_EQ(token_files(f.folder).size(), 8u);
}

TEST(DataStream, MakesDamagedFilesAnewAndNoticesThoseThatItHasOpen) {
  Folder f;
  f.open();
  const std::string path = token_files(f.folder).front().string(), whole = io::slurp(path);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() - 1), std::string("no token file"), std::string()}) {
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(f.open(), "t");
    EXPECT_EQ(io::slurp(path), whole);
  }
  for (const fs::path& one : token_files(f.folder)) {
    std::string bytes = io::slurp(one.string());
    bytes[140] = static_cast<char>(bytes[140] ^ 1);
    std::ofstream(one, std::ios::binary) << bytes;
  }
  const auto data = f.sample.open();
  io::expect_refusal([&] { data->training_batch(0, 4, 1); },
                     {".tokens", "is damaged", "remove it"});
}

TEST(DataStream, LeavesNothingWhereItIsGivenUp) {
  Folder f;
  OpenOptions options;
  options.reading = [](const ReadingProgress&) { fail(ErrorCode::failed, "x", "given up"); };
  EXPECT_THROW(f.sample.open(options), Error);
  EXPECT_TRUE(token_files(f.folder).empty());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(f.folder))
    names.push_back(entry.path().filename().string());
  EXPECT_EQ(names, std::vector<std::string>{"lock"});
}

TEST(DataStream, ASecondWriterWaitsAndTakesWhatTheFirstHasWritten) {
  Folder f;
  f.open();
  const std::vector<fs::path> written = token_files(f.folder);
  const fs::path aside = f.files.file("aside");
  fs::create_directory(aside);
  for (const fs::path& path : written) fs::rename(path, aside / path.filename());
  const std::string lock_path = f.folder + "/lock";
  io::Descriptor lock = io::open_lock(lock_path);
  ASSERT_TRUE(io::has_taken_lock(lock, lock_path));
  std::string phases;
  OpenOptions options;
  options.reading = [&](const ReadingProgress& p) {
    phases += "cmtw"[static_cast<int>(p.phase)];
    if (p.phase != ReadingProgress::Phase::waiting) return;
    for (const fs::path& path : written)
      if (fs::exists(aside / path.filename())) fs::rename(aside / path.filename(), path);
    lock.close();
  };
  f.sample.open(options);
  EXPECT_EQ(phases, "w");
}

TEST(DataStream, NamesFileAndLineOfWhatIsWrong) {
  Folder f;
  const auto refused = [&](const std::string& bytes,
                           std::initializer_list<std::string_view> parts) {
    f.files.file("bad.txt", bytes);
    f.sample.config.training.text = {"text.txt", "bad.txt"};
    io::expect_refusal([&] { f.sample.open(); }, parts);
  };
  f.sample.config.tokenizer = "bpe:280";
  refused("one\ntwo\nth\xffree\n", {"bad.txt:3", "not UTF-8", "column 3", "offset 10"});
  refused("one\ntwo\xe5", {"bad.txt:2", "column 4"});
  refused("", {"bad.txt", "is empty"});
  refused("\xef\xbb\xbf", {"bad.txt", "is empty"});
  refused("\x1f\x8b\x08\x00", {"bad.txt", "ends inside"});
  f.sample.config.training.text = {"text.txt"};
  f.sample.config.context = 100000;
  io::expect_refusal([&] { f.sample.open(); }, {"text.txt", "shorter than a window"});
}

TEST(DataStream, NamesTheLineThatATokenizerRefuses) {
  Folder f;
  const std::string text = io::slurp(f.files.file("text.txt"));
  f.sample.config.token_folder.clear();
  f.sample.config.tokenizer = "char";
  OpenOptions options;
  options.codec = f.sample.open()->shared_codec();
  f.sample.config.token_folder = f.folder;
  f.files.file("bad.txt", text + "\nQ\n");
  f.sample.config.training.text = {"text.txt", "bad.txt"};
  f.sample.config.validation_share = 0;
  const auto lines = std::count(text.begin(), text.end(), '\n');
  io::expect_refusal([&] { f.sample.open(options); },
                     {"bad.txt:" + std::to_string(lines + 2), "not in the vocabulary"});
}

}  // namespace
}  // namespace heddle::data
