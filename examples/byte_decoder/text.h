// Bytes of a text file as training batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/random.h"
#include "heddle/tensor.h"

namespace byte_decoder {

struct Batch {
  heddle::Tensor inputs;   // [B, T] i32
  heddle::Tensor targets;  // [B·T] i32: the byte that follows each input
};

class Text {
 public:
  // The last tenth is held out. Throws heddle::Error when the file cannot be read or is too short.
  Text(const std::string& path, std::int64_t context);

  // `count` windows at random places of the training part; the same for the same key.
  Batch training_batch(std::int64_t count, const heddle::RandomKey& key) const;
  // Windows spread evenly over the held-out part.
  Batch held_out_batch(std::int64_t count) const;

  std::int64_t bytes() const { return static_cast<std::int64_t>(data_.size()); }

 private:
  Batch windows(const std::vector<std::int64_t>& starts) const;

  std::string data_;
  std::int64_t context_;
  std::int64_t split_;  // first held-out byte
};

}  // namespace byte_decoder
