#include "text/models/word_encoder.h"

namespace heddle::text {

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
