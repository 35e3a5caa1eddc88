#include "train/evaluate/lengthen.h"

#include <algorithm>
#include <vector>

namespace heddle::train {

namespace {

// x is [B, T]; new columns have the row's last value, or `fill`.
template <class T>
Tensor widened(const Tensor& x, std::int64_t columns, const T* fill) {
  const std::int64_t rows = x.size(0), old = x.size(1);
  const std::vector<T> values = x.to_vector<T>();
  Tensor wide = Tensor::empty({rows, columns}, x.dtype());
  T* out = wide.mutable_data<T>();
  for (std::int64_t row = 0; row < rows; ++row, out += columns) {
    const T* from = values.data() + row * old;
    std::copy(from, from + old, out);
    std::fill(out + old, out + columns, fill != nullptr ? *fill : from[old - 1]);
  }
  return wide;
}

// The tokens of one side and how many of each row count.
void lengthen(Tensor& tokens, Tensor& lengths, std::int64_t columns) {
  if (!lengths.defined()) {
    const std::vector<std::int64_t> all(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
    lengths = Tensor::from<std::int64_t>({tokens.size(0)}, all);
  }
  tokens = widened<std::int32_t>(tokens, columns, nullptr);
}

bool is_short(const Tensor& tokens, std::int64_t least) {
  return tokens.defined() && tokens.size(1) > 0 && tokens.size(1) < least;
}

}  // namespace

model::Batch lengthened(const model::Batch& batch, std::int64_t least) {
  model::Batch longer = batch;
  const bool pairs = batch.target_tokens.defined();
  const Tensor& answered = pairs ? batch.target_tokens : batch.tokens;
  if (is_short(answered, least) && batch.targets.rank() == 2)
    longer.targets = widened(batch.targets, least, &model::kIgnore);
  if (is_short(batch.tokens, least)) {
    lengthen(longer.tokens, longer.lengths, least);
    if (batch.documents.defined())
      longer.documents = widened<std::int64_t>(batch.documents, least, nullptr);
  }
  if (is_short(batch.target_tokens, least))
    lengthen(longer.target_tokens, longer.target_lengths, least);
  return longer;
}

}  // namespace heddle::train
