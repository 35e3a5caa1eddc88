// Small data of every kind, written into a folder of the test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "io/images/image.h"
#include "io/test_support.h"

namespace heddle::data {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xff);
  return bytes;
}

// An IDX file of bytes.
inline std::string idx(const std::vector<std::uint32_t>& sizes, const std::string& bytes) {
  std::string file{0, 0, 8, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) file += big_endian(size);
  return file + bytes;
}

// Byte i is (7 i + 3 (i / 11)) mod 256.
inline std::string pattern_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>((7 * i + 3 * (i / 11)) & 0xff);
  return bytes;
}

// "w3 w4 w5": `words` of them.
inline std::string sentence(std::size_t first, std::size_t words) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i)
    text += (i == 0 ? "w" : " w") + std::to_string((first + i) % 23);
  return text;
}

struct Sample {
  std::string name;
  model::Kind kind;
  model::Task task;
  DataConfig config;

  std::unique_ptr<Dataset> open(const OpenOptions& options = {}) const {
    return open_dataset(config, kind, task, options);
  }
};

// One folder with files for all tasks.
class SampleData {
 public:
  SampleData() {
    std::string text, pairs, tags, labelled;
    for (std::size_t i = 0; i < 101; ++i) {
      const std::size_t length = 1 + i * 7 % 13;
      const std::string line = sentence(i, length);
      text += line + ".\n";
      pairs += line + "\t" + sentence(i + 5, 1 + i * 5 % 11) + "\n";
      for (std::size_t j = 0; j < length; ++j)
        tags += "w" + std::to_string((i + j) % 23) + "\tT" + std::to_string((i + j) % 3) + "\n";
      tags += "\n";
      labelled += (i % 2 == 0 ? "good\t" : "bad\t") + line + "\n";
    }
    dir_.file("text.txt", text);
    dir_.file("pairs.tsv", pairs);
    dir_.file("tags.tsv", tags);
    dir_.file("labelled.tsv", labelled);
    dir_.file("images.idx", idx({50, 4, 6}, pattern_bytes(50 * 4 * 6)));
    std::string labels;
    for (int i = 0; i < 50; ++i) labels += static_cast<char>(i % 5);
    dir_.file("labels.idx", idx({50}, labels));
  }

  std::string file(const std::string& name) const { return dir_.file(name); }
  std::string file(const std::string& name, std::string_view bytes) const {
    return dir_.file(name, bytes);
  }
  const std::string& path() const { return dir_.path(); }

  DataConfig base(const std::string& tokenizer) const {
    DataConfig config;
    config.directory = dir_.path();
    config.tokenizer = tokenizer;
    config.validation_share = 0.2;
    return config;
  }
  Sample language(const std::string& tokenizer = "char") const {
    DataConfig config = base(tokenizer);
    config.training.text = {"text.txt"};
    config.context = 16;
    return {"language", model::Kind::decoder, model::Task::language, config};
  }
  Sample masked() const {
    Sample sample = language("word");
    sample.config.context = 12;
    return {"masked", model::Kind::encoder, model::Task::masked, sample.config};
  }
  Sample translate(const std::string& tokenizer = "word") const {
    DataConfig config = base(tokenizer);
    config.training.pairs = "pairs.tsv";
    return {"translate", model::Kind::encoder_decoder, model::Task::translate, config};
  }
  Sample tag(const std::string& tokenizer = "word") const {
    DataConfig config = base(tokenizer);
    config.training.tags = "tags.tsv";
    return {"tag", model::Kind::encoder, model::Task::tag, config};
  }
  Sample labelled() const {
    DataConfig config = base("bpe:280");
    config.training.labelled = "labelled.tsv";
    return {"labelled", model::Kind::encoder, model::Task::classify, config};
  }
  Sample images() const {
    DataConfig config = base("");
    config.training.images = "images.idx";
    config.training.labels = "labels.idx";
    config.flip = true;
    config.shift = 1;
    return {"images", model::Kind::vit, model::Task::classify, config};
  }
  std::vector<Sample> all() const {
    return {language(), masked(), translate(), tag(), tag("bpe:280"), labelled(), images()};
  }

 private:
  io::TempDir dir_;
};

inline std::string bytes_of(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return tensor.describe() + std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
}

// Everything a batch holds, bit by bit.
inline std::string bytes_of(const model::Batch& batch) {
  std::string all = std::to_string(batch.counted);
  for (const auto tensor : model::kBatchTensors) all += bytes_of(batch.*tensor);
  return all;
}

inline std::vector<std::int32_t> ints(const Tensor& tensor) {
  return tensor.to_vector<std::int32_t>();
}

// Lengths of all rows, also where they are left out.
inline std::vector<std::int64_t> lengths_of(const Tensor& lengths, const Tensor& tokens) {
  if (lengths.defined()) return lengths.to_vector<std::int64_t>();
  return std::vector<std::int64_t>(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
}

// The tokens of a row, without its padding.
inline std::vector<std::int32_t> row_of(const Tensor& values, std::int64_t row,
                                        std::int64_t length) {
  const auto begin = values.data<std::int32_t>() + row * values.size(1);
  return {begin, begin + length};
}

}  // namespace heddle::data
