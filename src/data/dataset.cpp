#include "data/dataset.h"

namespace heddle::data {

BatchShape Dataset::training_shape(std::int64_t step, std::int64_t batch,
                                   std::uint64_t seed) const {
  const model::Batch made = training_batch(step, batch, seed);
  BatchShape shape;
  shape.sequences = (made.tokens.defined() ? made.tokens : made.images).size(0);
  if (made.tokens.defined()) shape.tokens = made.tokens.size(1);
  if (made.target_tokens.defined()) shape.target_tokens = made.target_tokens.size(1);
  shape.documents = made.documents.defined();
  return shape;
}

}  // namespace heddle::data
