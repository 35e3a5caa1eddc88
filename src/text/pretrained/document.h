// Parts of a tokenizer.json, for tokenizers that come in other files: all of them go through one
// reader, and are saved as what that reads.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/process/added_token.h"

namespace heddle::text {

using Document = nlohmann::ordered_json;

struct DocumentParts {
  std::vector<AddedToken> added;
  Document normalizer = nullptr;
  Document pre_tokenizer = nullptr;
  Document post_processor = nullptr;
  Document decoder = nullptr;
  Document model;
};
// Throws Error, naming `where`, when a name is not UTF-8.
std::string document_text(const DocumentParts& parts, std::string_view where);

// {"name": id}. A name that comes twice is the caller's to refuse.
Document vocabulary_object(std::span<const std::pair<std::string, std::int32_t>> names);

Document replace_step(std::string_view kind, std::string_view pattern, std::string_view content);
Document split_step(std::string_view pattern);  // matches stand alone
// `regex`: cut by GPT-2's pattern first.
Document byte_level_step(bool prefix_space, bool regex);
// {"type": "Sequence", key: steps}; the step itself when there is one, null when there is none.
Document sequence_of(std::string_view key, std::vector<Document> steps);

// One token around the text, or two: [CLS] A [SEP], and for pairs [CLS] A [SEP] B [SEP].
struct FrameToken {
  std::string name;
  std::int32_t id = 0;
};
Document bert_frame(const FrameToken& begin, const FrameToken& end);

}  // namespace heddle::text
