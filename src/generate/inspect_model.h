// heddle::inspect() of a model that need not come from a run's directory.
#pragma once

#include "data/codec/codec.h"
#include "generate/inspect.h"
#include "model/model.h"

namespace heddle::generate {

struct InspectOptions {
  DType precision = DType::f32;  // of activations
  BeamOptions beam = {};         // for a target that is not given
};

Inspection inspect(const model::Model& model, const data::Codec& codec, const InspectInput& input,
                   const InspectOptions& options = {});

}  // namespace heddle::generate
