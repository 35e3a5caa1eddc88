// A step of training whose batch is cut into a fixed number of parts, train.parts, which any number
// of ranks compute: the bits of the step are the same for all of them.
//
// Each part has a gradient of its own, and they are added in the order of a tree over the parts
// (distributed/tree.h). A rank computes neighbouring parts, gets its shard of the sum, has the
// optimiser's state for that shard alone, and updates it; then all get all weights.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/reduce.h"
#include "distributed/shards.h"
#include "model/batch.h"
#include "model/model.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "recipe/train_config.h"

namespace heddle::optim {

// Losses of parts `range` of config.parts, whose gradients are added to the parameters', and what
// is to be done after each: `each(part, loss)`, the loss being its share of the batch's.
void compute_parts(const model::Model& model, const model::Batch& batch,
                   const recipe::TrainConfig& config, std::int64_t step,
                   const distributed::Range& range,
                   const std::function<void(std::int64_t, double)>& each);

class GroupStep {
 public:
  // config.parts must be there. The parameters, on the CPU or a meta device, and the group must
  // outlive it.
  GroupStep(const recipe::TrainConfig& config, nn::Parameters& parameters,
            distributed::Communicator& group);

  struct Numbers {
    double loss = 0, norm = 0;
  };
  // Called by all ranks with the same batch. A loss or a norm that is not finite changes nothing.
  Numbers take(const model::Model& model, const model::Batch& batch, std::int64_t step,
               double rate);

  // The state of the whole optimiser in tensors of its own, as Optimizer::state() names it, on rank
  // 0; the others get none. set_state() is the way back: what rank 0 says, all have.
  std::vector<nn::Parameter> state() const;
  void set_state(const std::vector<nn::Parameter>& whole);
  // Empty tensors of that kind, to be filled.
  std::vector<nn::Parameter> empty_state() const;

  // Weights of rank 0 for all.
  void share_weights();

  // Bytes that this rank sends in a step.
  std::int64_t traffic() const;

 private:
  int slots() const;  // tensors of state for each parameter
  std::vector<Tensor> weights() const;
  std::vector<Tensor> take_gradients();
  std::vector<Tensor> slot_of_slices(int slot) const;

  recipe::TrainConfig config_;
  nn::Parameters& parameters_;
  distributed::Communicator& group_;
  distributed::Shards shards_;
  Optimizer optimizer_;  // of this rank's shard
};

}  // namespace heddle::optim
