// A codec in a run's directory.
#include <nlohmann/json.hpp>
#include <utility>

#include "data/codec/codec.h"
#include "data/codec/model_facts.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "io/json/json.h"

namespace heddle::data {
namespace {

constexpr const char* kFacts = "/codec.json";
constexpr const char* kSource = "/tokenizer.json";
constexpr const char* kTarget = "/target_tokenizer.json";
constexpr std::int64_t kLongest = std::int64_t{1} << 40;

model::Task task_of(const io::Json& value) {
  using model::Task;
  for (const Task task : {Task::language, Task::tag, Task::classify, Task::masked, Task::translate})
    if (value.string() == model::to_string(task)) return task;
  value.refuse("language, tag, classify, masked or translate");
}

nlohmann::json json_of(const ImageFacts& image) {
  return {{"channels", image.channels},
          {"height", image.height},
          {"width", image.width},
          {"mean", image.mean},
          {"deviation", image.deviation}};
}

std::vector<float> floats_of(const io::Json& value) {
  std::vector<float> floats;
  for (const double number : value.numbers()) floats.push_back(static_cast<float>(number));
  return floats;
}

ImageFacts image_of(const io::Json& value) {
  constexpr std::int64_t kLargest = 1 << 16;
  ImageFacts image;
  image.channels = value.at("channels").integer(1, kLargest);
  image.height = value.at("height").integer(1, kLargest);
  image.width = value.at("width").integer(1, kLargest);
  image.mean = floats_of(value.at("mean"));
  image.deviation = floats_of(value.at("deviation"));
  return image;
}

// The checksum of what it wrote. It is kept in codec.json, because tokenizer.json is for others to
// read as well, and codec.json is written after it.
std::string save_tokenizer(const text::Tokenizer& tokenizer, const std::string& path) {
  const std::string json = tokenizer.to_json();
  io::write_file_atomic(path, json);
  return io::crc32_of(json);
}

// `sum` is empty in runs of earlier versions.
std::shared_ptr<text::Tokenizer> load_tokenizer(const std::string& path, const std::string& sum) {
  const std::string json = io::read_file(path, io::JsonLimits{}.max_bytes);
  const bool as_written = sum.empty() || sum == io::crc32_of(json);
  std::shared_ptr<text::Tokenizer> tokenizer;
  try {
    tokenizer = text::Tokenizer::from_json(json, path);
  } catch (const Error& e) {
    if (as_written) throw;
    fail(e.code(), e.where(), "is damaged: " + e.problem(), e.expected(), e.got());
  }
  if (!as_written)
    io::fail_io(path,
                "was edited by hand, or damaged where it can still be read, after Heddle wrote it",
                "the file it was written as (checksum " + sum +
                    "); if the edit is meant, delete the keys of codec.json that end in \"crc32\"",
                "checksum " + io::crc32_of(json));
  return tokenizer;
}

}  // namespace

void Codec::save(const std::string& directory) const {
  nlohmann::json facts = {{"task", model::to_string(parts_.task)}};
  if (parts_.source) {
    facts["tokenizer_crc32"] = save_tokenizer(*parts_.source, directory + kSource);
    facts["length"] = parts_.length;
    facts["special_tokens_in_text"] = parts_.specials == text::SpecialsInText::recognised;
    facts["target_tokenizer"] = parts_.target != nullptr;
    facts["word_shapes"] = parts_.word_shapes;
    facts["source_end"] = parts_.source_end;
  }
  if (parts_.target)
    facts["target_tokenizer_crc32"] = save_tokenizer(*parts_.target, directory + kTarget);
  if (!parts_.labels.empty()) facts["labels"] = parts_.labels;
  if (parts_.image) facts["image"] = json_of(*parts_.image);
  if (parts_.framed) facts[kModelFacts] = json_of_model(parts_);
  // Last: whoever finds it finds the others too.
  io::write_sealed_json(directory + kFacts, std::move(facts));
}

bool Codec::exists(const std::string& directory) { return io::file_exists(directory + kFacts); }

std::shared_ptr<const Codec> Codec::load(const std::string& directory) {
  const io::Json facts = io::read_sealed_json(
      directory + kFacts,
      {"task", "length", "special_tokens_in_text", "target_tokenizer", "word_shapes", "labels",
       "image", "tokenizer_crc32", "target_tokenizer_crc32", "source_end", kModelFacts});
  CodecParts parts;
  parts.task = task_of(facts.at("task"));
  if (facts.has("labels")) parts.labels = facts.at("labels").strings();
  if (facts.has("image")) {
    parts.image = image_of(facts.at("image"));
  } else {
    const auto source = load_tokenizer(directory + kSource, facts.string_or("tokenizer_crc32", ""));
    if (facts.has(kModelFacts)) take_model_facts(facts.at(kModelFacts), *source, parts);
    parts.source = source;
    parts.length = facts.at("length").integer(1, kLongest);
    parts.word_shapes = facts.at("word_shapes").boolean();
    parts.source_end = facts.boolean_or("source_end", true);  // runs of earlier versions: always
    if (facts.at("special_tokens_in_text").boolean())
      parts.specials = text::SpecialsInText::recognised;
    if (facts.at("target_tokenizer").boolean())
      parts.target =
          load_tokenizer(directory + kTarget, facts.string_or("target_tokenizer_crc32", ""));
  }
  try {
    return std::make_shared<Codec>(std::move(parts));
  } catch (const Error& e) {
    fail(ErrorCode::io, facts.file(), e.problem(), e.expected(), e.got());
  }
}

}  // namespace heddle::data
