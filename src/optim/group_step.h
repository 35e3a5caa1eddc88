// A step of training whose batch is cut into a fixed number of parts, train.parts, which any number
// of ranks compute: the bits of the step are the same for all of them.
//
// Each part has a gradient of its own, and they are added in the order of a tree over the parts
// (distributed/tree.h). A rank gets its shard of the sum, has the optimiser's state for that shard
// alone, and updates it; then all get all weights.
//
// What else is sharded (config.shard) changes no bit. "optimizer": a rank computes neighbouring
// parts, adds their gradients as the tree does, and gives the owners what is left. "gradients": the
// gradients of each part go to their owners while its backward pass goes on (sharded_sum.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "autograd/receive.h"
#include "distributed/communicator.h"
#include "distributed/reduce.h"
#include "distributed/shards.h"
#include "model/batch.h"
#include "model/model.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "recipe/train_config.h"

namespace heddle::optim {

// The loss of part `part` of config.parts, as its share of the batch's, whose gradients are added
// to the parameters' or, with a receiver, go there as they become complete.
double compute_part(const model::Model& model, const model::Batch& batch,
                    const recipe::TrainConfig& config, std::int64_t step, std::int64_t part,
                    autograd::GradientReceiver receive = {});

// Losses of parts `range` of config.parts, whose gradients are added to the parameters', and what
// is to be done after each: `each(part, loss)`, the loss being its share of the batch's.
void compute_parts(const model::Model& model, const model::Batch& batch,
                   const recipe::TrainConfig& config, std::int64_t step,
                   const distributed::Range& range,
                   const std::function<void(std::int64_t, double)>& each);

class GroupStep {
 public:
  // config.parts must be there. The parameters, on the CPU or a meta device, and the group must
  // outlive it. `bucket` are the elements whose gradients are summed together; 0: as many as usual.
  GroupStep(const recipe::TrainConfig& config, nn::Parameters& parameters,
            distributed::Communicator& group, std::int64_t bucket = 0);

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
  bool by_buckets() const { return config_.shard == recipe::Shard::gradients; }
  int slots() const;  // tensors of state for each parameter
  std::vector<Tensor> weights() const;
  std::vector<Tensor> take_gradients();
  // This rank's shard of the sum, a tensor for each slice; `losses` are of its parts.
  std::vector<Tensor> sum_at_the_end(const model::Model& model, const model::Batch& batch,
                                     std::int64_t step, std::vector<double>& losses);
  std::vector<Tensor> sum_on_the_way(const model::Model& model, const model::Batch& batch,
                                     std::int64_t step, std::vector<double>& losses);
  double loss_of_all(std::span<const double> losses);
  // The slices of a slot, bucket by bucket.
  std::vector<std::vector<Tensor>> slot_of_slices(int slot) const;

  recipe::TrainConfig config_;
  nn::Parameters& parameters_;
  distributed::Communicator& group_;
  // All parameters, dealt out at once, or bucket by bucket.
  std::vector<distributed::Shards> shards_;
  std::unordered_map<const TensorImpl*, std::size_t> numbers_;  // of the parameters
  Optimizer optimizer_;                                         // of this rank's shards
};

}  // namespace heddle::optim
