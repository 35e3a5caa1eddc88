#include "data/codec/model_facts.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/process/frame.h"

namespace heddle::data {
namespace {

using text::FramePart;

struct SpecialKey {
  const char* name;
  std::optional<std::int32_t> text::SpecialIds::* id;
};

constexpr std::array<SpecialKey, 7> kSpecials = {{{"pad", &text::SpecialIds::pad},
                                                  {"begin", &text::SpecialIds::begin},
                                                  {"end", &text::SpecialIds::end},
                                                  {"unknown", &text::SpecialIds::unknown},
                                                  {"mask", &text::SpecialIds::mask},
                                                  {"separator", &text::SpecialIds::separator},
                                                  {"classify", &text::SpecialIds::classify}}};

// [kind, id, segment] of each part.
nlohmann::json json_of(const std::vector<FramePart>& parts) {
  nlohmann::json all = nlohmann::json::array();
  for (const FramePart& part : parts)
    all.push_back({static_cast<int>(part.kind), part.id, part.segment});
  return all;
}

std::vector<FramePart> frame_of(const io::Json& value, std::int64_t vocabulary) {
  constexpr std::int64_t kMostParts = 64, kMostSegments = 1 << 16;
  if (value.size() > kMostParts) value.refuse("at most 64 parts");
  std::vector<FramePart> parts(value.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const io::Json part = value.at(i);
    parts[i].kind = static_cast<FramePart::Kind>(part.at(std::size_t{0}).integer(0, 2));
    parts[i].id = static_cast<std::int32_t>(part.at(1).integer(0, vocabulary - 1));
    parts[i].segment = static_cast<std::int32_t>(part.at(2).integer(0, kMostSegments));
  }
  return parts;
}

}  // namespace

nlohmann::json json_of_model(const CodecParts& parts) {
  nlohmann::json specials = nlohmann::json::object(), templates = nlohmann::json::array();
  for (const SpecialKey& key : kSpecials)
    if (const auto id = parts.source->specials().*key.id) specials[key.name] = *id;
  for (const text::NamedTemplate& t : parts.templates)
    templates.push_back({{"name", t.name}, {"text", t.text}});
  const text::Frame& frame = parts.source->frame();
  return {{"rows", parts.rows},
          {"ends", parts.ends},
          {"special_tokens", std::move(specials)},
          {"frame", json_of(frame.single)},
          {"frame_of_pairs", json_of(frame.pair)},
          {"templates", std::move(templates)}};
}

void take_model_facts(const io::Json& facts, text::Tokenizer& tokenizer, CodecParts& parts) {
  const std::int64_t vocabulary = tokenizer.vocabulary();
  text::SpecialIds specials;
  for (const SpecialKey& key : kSpecials)
    if (facts.at("special_tokens").has(key.name))
      specials.*key.id = static_cast<std::int32_t>(
          facts.at("special_tokens").at(key.name).integer(0, vocabulary - 1));
  tokenizer.set_specials(specials);
  tokenizer.set_frame({.single = frame_of(facts.at("frame"), vocabulary),
                       .pair = frame_of(facts.at("frame_of_pairs"), vocabulary)});
  parts.framed = true;
  parts.rows = facts.at("rows").integer(0, text::kMaxVocabulary);
  const io::Json ends = facts.at("ends"), templates = facts.at("templates");
  parts.ends.reserve(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i)
    parts.ends.push_back(
        static_cast<std::int32_t>(ends.at(i).integer(0, text::kMaxVocabulary - 1)));
  parts.templates.reserve(templates.size());
  for (std::size_t i = 0; i < templates.size(); ++i)
    parts.templates.push_back(
        {templates.at(i).at("name").string(), templates.at(i).at("text").string()});
}

}  // namespace heddle::data
