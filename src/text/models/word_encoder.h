// Encodes words by a model, and remembers them: texts repeat their words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/models/model.h"

namespace heddle::text {

class WordEncoder {
 public:
  explicit WordEncoder(const Model& model) : model_(&model) {}

  // The memory of one call; kept for the next call, whichever thread makes it.
  class Borrowed {
   public:
    explicit Borrowed(const WordEncoder& owner) : owner_(&owner), workspace_(owner.borrow()) {}
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { owner_->give_back(std::move(workspace_)); }
    WordWorkspace& operator*() const noexcept { return *workspace_; }

   private:
    const WordEncoder* owner_;
    std::unique_ptr<WordWorkspace> workspace_;
  };
  Borrowed workspace() const { return Borrowed(*this); }

  void encode(std::string_view word, std::size_t offset, WordWorkspace& workspace,
              std::vector<std::int32_t>& ids) const {
    const std::span<const std::int32_t> known = workspace.cache.find(word);
    if (!known.empty()) {
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
    encode_new(word, offset, workspace, ids);
  }

 private:
  void encode_new(std::string_view word, std::size_t offset, WordWorkspace& workspace,
                  std::vector<std::int32_t>& ids) const;
  void encode_part(std::string_view part, std::size_t offset, WordWorkspace& workspace,
                   std::vector<std::int32_t>& ids) const;
  std::unique_ptr<WordWorkspace> borrow() const;
  void give_back(std::unique_ptr<WordWorkspace> workspace) const noexcept;

  const Model* model_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<WordWorkspace>> idle_;  // by mutex_
};

}  // namespace heddle::text
