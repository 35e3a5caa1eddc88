#include "text.h"

#include <fstream>
#include <sstream>

#include "heddle/error.h"

namespace byte_decoder {

using heddle::Tensor;

Text::Text(const std::string& path, std::int64_t context) : context_(context) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file) heddle::fail(heddle::ErrorCode::io, path, "cannot be read", "a readable text file");
  data_ = content.str();
  split_ = bytes() / 10 * 9;
  if (bytes() - split_ < context + 1)
    heddle::fail(heddle::ErrorCode::io, path, "is too short",
                 std::to_string(10 * (context + 2)) + " bytes or more",
                 std::to_string(bytes()) + " bytes");
}

Batch Text::windows(const std::vector<std::int64_t>& starts) const {
  const auto rows = static_cast<std::int64_t>(starts.size());
  Batch batch{Tensor::empty({rows, context_}, heddle::DType::i32),
              Tensor::empty({rows * context_}, heddle::DType::i32)};
  auto* in = batch.inputs.mutable_data<std::int32_t>();
  auto* out = batch.targets.mutable_data<std::int32_t>();
  for (const std::int64_t start : starts)
    for (std::int64_t t = 0; t < context_; ++t) {
      const auto at = static_cast<std::size_t>(start + t);
      *in++ = static_cast<unsigned char>(data_[at]);
      *out++ = static_cast<unsigned char>(data_[at + 1]);
    }
  return batch;
}

Batch Text::training_batch(std::int64_t count, const heddle::RandomKey& key) const {
  std::vector<std::int64_t> starts;
  const auto choices = static_cast<std::uint64_t>(split_ - context_);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto block = heddle::philox(key, static_cast<std::uint64_t>(i));
    const std::uint64_t word = (static_cast<std::uint64_t>(block[0]) << 32) | block[1];
    starts.push_back(static_cast<std::int64_t>(word % choices));
  }
  return windows(starts);
}

Batch Text::held_out_batch(std::int64_t count) const {
  std::vector<std::int64_t> starts;
  const std::int64_t room = bytes() - split_ - context_ - 1;
  for (std::int64_t i = 0; i < count; ++i) starts.push_back(split_ + room * i / count);
  return windows(starts);
}

}  // namespace byte_decoder
