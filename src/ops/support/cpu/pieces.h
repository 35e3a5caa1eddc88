// Many arrays as one piece of work: an optimiser's small tensors are not worth a parallel section
// each, and its large ones are too much for one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::cpu {

struct Piece {
  std::size_t array = 0;
  std::int64_t begin = 0, end = 0;  // elements of that array
};

// Every array is cut into pieces of `most` elements, the last of it perhaps shorter; neighbours
// that have no more than `most` together share a chunk, which one thread computes. By the sizes
// alone.
class Pieces {
 public:
  Pieces(std::span<const std::int64_t> counts, std::int64_t most) {
    std::int64_t room = 0;  // in the chunk that is open
    for (std::size_t array = 0; array < counts.size(); ++array) {
      for (std::int64_t begin = 0; begin < counts[array]; begin += most) {
        const std::int64_t left = counts[array] - begin;
        const std::int64_t size = left < most ? left : most;
        if (size > room) {
          chunks_.push_back(pieces_.size());
          room = most;
        }
        room -= size;
        pieces_.push_back({array, begin, begin + size});
      }
    }
    chunks_.push_back(pieces_.size());
  }

  std::int64_t chunks() const { return static_cast<std::int64_t>(chunks_.size()) - 1; }

  std::span<const Piece> of(std::int64_t chunk) const {
    const auto i = static_cast<std::size_t>(chunk);
    return std::span(pieces_).subspan(chunks_[i], chunks_[i + 1] - chunks_[i]);
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<std::size_t> chunks_;  // where each begins among the pieces, and the end
};

}  // namespace heddle::cpu
