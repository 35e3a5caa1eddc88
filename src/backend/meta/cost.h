// Costs of ops, by their shapes: FLOPs and bytes moved. Counted alike on every device; on the meta
// device nothing else happens.
#pragma once

#include "heddle/cost.h"
#include "heddle/tensor.h"

namespace heddle::meta {

// Books the cost and tells whether there is anything to compute: false on the meta device.
bool charge(Device device, const Cost& cost) noexcept;

}  // namespace heddle::meta
