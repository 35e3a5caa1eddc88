#include "text/models/word_encoder.h"

namespace heddle::text {

// A long word that can be cut is not remembered as a whole: its parts are, and come again sooner.
void WordEncoder::encode_new(std::string_view word, std::size_t offset, WordWorkspace& workspace,
                             std::vector<std::int32_t>& ids) const {
  std::size_t end = model_->part_end(word, 0);
  if (end == word.size()) {
    encode_part(word, offset, workspace, ids);
    return;
  }
  const std::size_t first = ids.size();
  for (std::size_t at = 0; at < word.size(); at = end) {
    if (at != 0) end = model_->part_end(word, at);
    const std::string_view part = word.substr(at, end - at);
    const std::span<const std::int32_t> known = workspace.cache.find(part);
    if (known.empty()) {
      encode_part(part, offset + at, workspace, ids);
    } else {
      ids.insert(ids.end(), known.begin(), known.end());
    }
  }
  constexpr std::size_t most = 12;  // a word of four Chinese characters
  if (word.size() <= most) workspace.cache.add(word, std::span(ids).subspan(first));
}

void WordEncoder::encode_part(std::string_view part, std::size_t offset, WordWorkspace& workspace,
                              std::vector<std::int32_t>& ids) const {
  workspace.word.clear();
  model_->encode(part, offset, workspace.word);
  workspace.cache.add(part, workspace.word);
  ids.insert(ids.end(), workspace.word.begin(), workspace.word.end());
}

std::unique_ptr<WordWorkspace> WordEncoder::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<WordWorkspace> workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<WordWorkspace>();
}

void WordEncoder::give_back(std::unique_ptr<WordWorkspace> workspace) const noexcept {
  // A word of a hostile text may have left a block of any size behind.
  constexpr std::size_t keep = 4096;
  if (workspace->word.capacity() > keep) workspace->word = {};
  try {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  } catch (...) {  // No memory to remember it by: the next call makes its own.
    workspace.reset();
  }
}

}  // namespace heddle::text
