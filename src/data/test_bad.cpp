// Bad data: every line of this table is a recipe that must be refused, with the place in the
// message.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "data/test_support.h"

namespace heddle::data {
namespace {

struct Bad {
  std::string name;
  std::function<Sample(const SampleData&)> make;
  std::vector<std::string> message;  // parts of it
};

Sample text(const SampleData& files, const std::string& bytes, const char* tokenizer = "char") {
  Sample sample = files.language(tokenizer);
  sample.config.training.text = {files.file("bad.txt", bytes)};
  return sample;
}

Sample pairs(const SampleData& files, const std::string& bytes) {
  Sample sample = files.translate("word:1");
  sample.config.training.pairs = files.file("bad.tsv", bytes);
  sample.config.validation_share = 0;
  return sample;
}

Sample two_files(const SampleData& files, const std::string& source, const std::string& target) {
  Sample sample = files.translate("word:1");
  sample.config.training.pairs = "";
  sample.config.training.source = files.file("bad.en", source);
  sample.config.training.target = files.file("bad.de", target);
  sample.config.validation_share = 0;
  return sample;
}

Sample test_pairs(const SampleData& files, const std::string& bytes) {
  Sample sample = files.translate();
  sample.config.max_length = 20;
  sample.config.test.pairs = files.file("bad.tsv", bytes);
  return sample;
}

Sample test_sides(const SampleData& files, const std::string& source, const std::string& target) {
  Sample sample = files.translate();
  sample.config.max_length = 20;
  sample.config.test = {};
  sample.config.test.source = files.file("bad.source", source);
  sample.config.test.target = files.file("bad.target", target);
  return sample;
}

Sample tags(const SampleData& files, const std::string& bytes) {
  Sample sample = files.tag("word:1");
  sample.config.training.tags = files.file("bad.tsv", bytes);
  sample.config.validation_share = 0;
  return sample;
}

Sample test_tags(const SampleData& files, const std::string& bytes) {
  Sample sample = files.tag();
  sample.config.max_length = 20;
  sample.config.test.tags = files.file("bad.tsv", bytes);
  return sample;
}

Sample labelled(const SampleData& files, const std::string& bytes) {
  Sample sample = files.labelled();
  sample.config.training.labelled = files.file("bad.tsv", bytes);
  sample.config.validation_share = 0;
  return sample;
}

Sample images(const SampleData& files, const std::string& pixels, const std::string& labels) {
  Sample sample = files.images();
  sample.config.training.images = files.file("bad-images.idx", pixels);
  sample.config.training.labels = files.file("bad-labels.idx", labels);
  return sample;
}

// `extra` makes the bad part of a folder with one good image in it.
Sample folder(const SampleData& files, const std::function<void(const std::string&)>& extra) {
  const std::string root = files.path() + "/folder";
  std::filesystem::create_directories(root + "/cat");
  io::write_png(root + "/cat/a.png", Tensor::full({1, 2, 3}, 5, DType::u8));
  extra(root);
  Sample sample = files.images();
  sample.config.training = {};
  sample.config.training.image_folder = root;
  sample.config.validation_share = 0;
  return sample;
}

std::string of(const char* line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

const std::vector<Bad>& bad_texts() {
  using F = const SampleData&;
  static const std::vector<Bad> kBad = {
      {"a file that is not there",
       [](F f) {
         Sample s = f.language();
         s.config.training.text = {"nowhere.txt"};
         return s;
       },
       {"nowhere.txt", "no such file"}},
      {"a folder instead of a file",
       [](F f) {
         Sample s = f.language();
         s.config.training.text = {f.path()};
         return s;
       },
       {"heddle-test"}},
      {"an empty text", [](F f) { return text(f, ""); }, {"bad.txt", "empty"}},
      {"a text that is only a byte order mark",
       [](F f) { return text(f, "\xEF\xBB\xBF"); },
       {"bad.txt", "empty"}},
      {"Latin-1 in line 3",
       [](F f) { return text(f, of("fine line\n", 2) + "caf\xE9 au lait\n" + of("more\n", 20)); },
       {"bad.txt:3", "UTF-8"}},
      {"UTF-16",
       [](F f) { return text(f, std::string("\xFF\xFEh\0i\0", 6)); },
       {"bad.txt:1", "UTF-8"}},
      {"a text shorter than a window",
       [](F f) {
         Sample s = text(f, "0123456789");
         s.config.validation_share = 0;
         s.config.context = 10;
         return s;
       },
       {"bad.txt", "at least 11 tokens (context)", "10"}},
      {"a held-out end too short to predict anything",
       [](F f) {
         Sample s = text(f, of("0123456789", 10));
         s.config.validation_share = 0.01;
         return s;
       },
       {"bad.txt", "held-out", "at least 2"}},
      {"an empty test text",
       [](F f) {
         Sample s = f.language();
         s.config.test.text = {f.file("t.txt", "")};
         return s;
       },
       {"t.txt", "empty"}},
      {"gzip cut short",
       [](F f) {
         return text(f, std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x2b\x4e", 12));
       },
       {"bad.txt"}},
      {"gzip with a wrong checksum",
       [](F f) {
         return text(f,
                     std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x2b\x4e\x4d\xce\xcf\x4b"
                                 "\x01\x00\x69\x11\x1f\xb7\x06\x00\x00\x00",
                                 26));
       },
       {"bad.txt"}},
      {"a masked model with a tokenizer that has no mask",
       [](F f) {
         Sample s = f.masked();
         f.language().open()->codec().source().save(f.file("own.json"));
         s.config.tokenizer = f.file("own.json");
         return s;
       },
       {"<mask>"}},
      {"a tokenizer file that is not there",
       [](F f) { return text(f, of("words\n", 40), "missing.json"); },
       {"missing.json", "no such file"}},
      {"a tokenizer file that is none",
       [](F f) {
         Sample s = f.language();
         s.config.tokenizer = f.file("broken.json", "{\"model\": 5}");
         return s;
       },
       {"broken.json"}},
  };
  return kBad;
}

const std::vector<Bad>& bad_pairs() {
  using F = const SampleData&;
  static const std::vector<Bad> kBad = {
      {"an empty file of pairs", [](F f) { return pairs(f, ""); }, {"bad.tsv", "empty"}},
      {"a pair without a tab",
       [](F f) { return pairs(f, "a\tb\nno tab here\n"); },
       {"bad.tsv:2", "one tab", "no tab here"}},
      {"a pair with two tabs", [](F f) { return pairs(f, "a\tb\tc\n"); }, {"bad.tsv:1", "one tab"}},
      {"more lines on the left",
       [](F f) { return two_files(f, "a\nb\nc\n", "x\ny\n"); },
       {"bad.en:3", "3 and 2"}},
      {"more lines on the right",
       [](F f) { return two_files(f, "a\n", "x\ny\n"); },
       {"bad.de:2", "1 and 2"}},
      {"one side empty", [](F f) { return two_files(f, "a\n", ""); }, {"bad.de", "empty"}},
      {"no pair with two sides",
       [](F f) { return pairs(f, "a\t\n\tb\n"); },
       {"bad.tsv", "no pairs are left", "2 with an empty side"}},
      {"only pairs that are too long",
       [](F f) {
         Sample s = pairs(f, "a b c\td\n");
         s.config.max_length = 2;
         return s;
       },
       {"bad.tsv", "no pairs are left", "1 longer than max_length"}},
      {"an empty side for evaluation",
       [](F f) { return test_pairs(f, "w1\tw2\nw3\t \n"); },
       {"bad.tsv:2", "empty side"}},
      {"a sentence too long for evaluation",
       [](F f) { return test_pairs(f, "w1\tw2\n" + of("w1 ", 21) + "\tw1\n"); },
       {"bad.tsv:2", "at most 20", "21"}},
      {"a source too long for evaluation, in a file of its own",
       [](F f) { return test_sides(f, "w1\n" + of("w1 ", 21) + "\n", "w1\nw1\n"); },
       {"bad.source:2", "at most 20", "21"}},
      {"a target too long for evaluation, in a file of its own",
       [](F f) { return test_sides(f, "w1\nw1\n", "w1\n" + of("w1 ", 21) + "\n"); },
       {"bad.target:2", "at most 20", "21"}},
      {"pairs in another encoding",
       [](F f) {
         return pairs(f,
                      "a\tb\nc\t\xFC"
                      "ber\n");
       },
       {"bad.tsv:2", "UTF-8"}},
      {"two pairs are too few to hold out from one",
       [](F f) {
         Sample s = pairs(f, "a\tb\n");
         s.config.validation_share = 0.5;
         return s;
       },
       {"validation_share", "at least 2"}},
      {"a tokenizer file without an end token",
       [](F f) {
         Sample s = f.translate();
         f.language().open()->codec().source().save(f.file("own.json"));
         s.config.tokenizer = f.file("own.json");
         return s;
       },
       {"</s>"}},
  };
  return kBad;
}

const std::vector<Bad>& bad_labels() {
  using F = const SampleData&;
  static const std::vector<Bad> kBad = {
      {"a word without a tag",
       [](F f) { return tags(f, "the\tD\ncat\n"); },
       {"bad.tsv:2", "word<TAB>tag", "cat"}},
      {"an empty tag", [](F f) { return tags(f, "the\t\n"); }, {"bad.tsv:1", "word<TAB>tag"}},
      {"three columns", [](F f) { return tags(f, "the\tthe\tD\n"); }, {"bad.tsv:1"}},
      {"nothing but empty lines", [](F f) { return tags(f, "\n\n \n"); }, {"bad.tsv:3", "word"}},
      {"a tag that training did not have",
       [](F f) { return test_tags(f, "w1\tT1\n\nw2\tT0\nw3\tT9\n"); },
       {"bad.tsv:4", "T9", "3 labels"}},
      {"a sentence too long for evaluation",
       [](F f) { return test_tags(f, "w1\tT1\n\n" + of("w1\tT1\n", 21)); },
       {"bad.tsv:3", "at most 20", "21"}},
      {"a text without a label",
       [](F f) { return labelled(f, "good\tfine\nbad\n"); },
       {"bad.tsv:2", "label<TAB>text"}},
      {"a label without a text",
       [](F f) { return labelled(f, "good\t  \n"); },
       {"bad.tsv:1", "label<TAB>text"}},
      {"an empty line among labelled texts",
       [](F f) { return labelled(f, "good\tx\n\nbad\ty\n"); },
       {"bad.tsv:2"}},
      {"a label that training did not have",
       [](F f) {
         Sample s = f.labelled();
         s.config.test.labelled = f.file("t.tsv", "good\tw1\nugly\tw2\n");
         return s;
       },
       {"t.tsv:2", "ugly"}},
  };
  return kBad;
}

const std::vector<Bad>& bad_images() {
  using F = const SampleData&;
  static const std::string pixels = idx({2, 2, 2}, "abcdefgh");
  static const std::vector<Bad> kBad = {
      {"more labels than images",
       [](F f) { return images(f, pixels, idx({3}, "\1\1\1")); },
       {"bad-labels.idx", "2, one for each image", "3"}},
      {"images that are cut short",
       [](F f) { return images(f, idx({2, 2, 2}, "abcdefg"), idx({2}, "\1\1")); },
       {"bad-images.idx"}},
      {"images in the place of labels",
       [](F f) { return images(f, pixels, pixels); },
       {"bad-labels.idx", "[labels]"}},
      {"labels in the place of images",
       [](F f) { return images(f, idx({2}, "\1\1"), idx({2}, "\1\1")); },
       {"bad-images.idx", "height"}},
      {"no images at all",
       [](F f) { return images(f, idx({0, 2, 2}, ""), idx({0}, "")); },
       {"bad-images.idx"}},
      {"a label without a name",
       [](F f) {
         Sample s = images(f, pixels, idx({2}, "\1\3"));
         s.config.label_names = {"a", "b", "c"};
         s.config.validation_share = 0;
         return s;
       },
       {"bad-labels.idx", "label of image 1", "0 to 2", "3"}},
      {"a test label beyond the classes",
       [](F f) {
         Sample s = f.images();
         s.config.test.images = f.file("t.idx", idx({1, 4, 6}, pattern_bytes(24)));
         s.config.test.labels = f.file("tl.idx", idx({1}, "\11"));
         return s;
       },
       {"tl.idx", "label of image 0", "0 to 4", "9"}},
      {"test images of another size",
       [](F f) {
         Sample s = f.images();
         s.config.test.images = f.file("t.idx", idx({1, 6, 4}, pattern_bytes(24)));
         s.config.test.labels = f.file("tl.idx", idx({1}, "\1"));
         return s;
       },
       {"t.idx", "[1, 4, 6]", "[1, 6, 4]"}},
      {"a shift as large as the image",
       [](F f) {
         Sample s = f.images();
         s.config.shift = 4;
         return s;
       },
       {"shift", "4"}},
      {"an image of another size in a folder",
       [](F f) {
         return folder(f, [](const std::string& root) {
           io::write_png(root + "/cat/b.png", Tensor::full({1, 3, 3}, 5, DType::u8));
         });
       },
       {"cat/b.png", "3 x 2", "3 x 3", "a.png"}},
      {"a file that is no image",
       [](F f) {
         return folder(
             f, [](const std::string& root) { std::ofstream(root + "/cat/notes.txt") << "notes"; });
       },
       {"cat/notes.txt"}},
      {"a file beside the classes",
       [](F f) {
         return folder(f, [](const std::string& root) { std::ofstream(root + "/x.png") << "x"; });
       },
       {"folder/x.png", "beside"}},
      {"a class without images",
       [](F f) {
         return folder(f, [](const std::string& root) {
           std::filesystem::create_directory(root + "/empty");
         });
       },
       {"folder/empty", "without images"}},
      {"a class that training did not have",
       [](F f) {
         Sample s = folder(f, [](const std::string&) {});
         const std::string later = f.path() + "/later";
         std::filesystem::create_directories(later + "/dog");
         io::write_png(later + "/dog/a.png", Tensor::full({1, 2, 3}, 5, DType::u8));
         s.config.test.image_folder = later;
         return s;
       },
       {"later/dog"}},
  };
  return kBad;
}

void expect_all_refused(const std::vector<Bad>& table) {
  for (const Bad& bad : table) {
    SCOPED_TRACE(bad.name);
    const SampleData files;
    try {
      bad.make(files).open();
      ADD_FAILURE() << "was taken";
    } catch (const Error& e) {
      for (const std::string& part : bad.message)
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
            << "no " << part << " in: " << e.what();
    }
  }
}

TEST(DataBad, Texts) { expect_all_refused(bad_texts()); }
TEST(DataBad, Pairs) { expect_all_refused(bad_pairs()); }
TEST(DataBad, TagsAndLabels) { expect_all_refused(bad_labels()); }
TEST(DataBad, Images) { expect_all_refused(bad_images()); }

TEST(DataBad, WhatACodecDoesNotKnowIsNamedByFileAndLine) {
  const SampleData files;
  OpenOptions options;
  Sample sample = files.language();
  options.codec = sample.open()->shared_codec();
  options.training = options.validation = false;
  sample.config.test.text = {files.file("a.txt", "w1\n"), files.file("b.txt", "w2\nw3\nw# \n")};
  io::expect_refusal([&] { sample.open(options); }, {"b.txt:3"});

  Sample tagged = files.tag();
  options.codec = tagged.open()->shared_codec();
  tagged.config.test.tags = files.file("t.tsv", "w1\tT2\nw1\tNEW\n");
  io::expect_refusal([&] { tagged.open(options); }, {"t.tsv:2", "NEW"});
}

}  // namespace
}  // namespace heddle::data
