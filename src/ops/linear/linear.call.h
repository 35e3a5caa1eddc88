// The calls that linear, linear_many and linear_pair make to a device.
#pragma once

#include <span>

#include "backend/meta/cost.h"
#include "ops/support/host.h"
#include "ops/support/product.h"

namespace heddle::ops {

// Whether a device's products multiply by Product::factor while a sum is in registers. Elsewhere
// (GPUs, whose products are a library's) the pass of RowSums does it, which reads the sums for
// dbias anyway.
inline bool multiplies_on_the_way(Device device) { return host_sees(device); }

// The step of a layer's gradient that comes before its products, in one pass over dy:
//   dsum = dy · slope, dbias[n] = Σ_rows dsum
// Without a slope dsum is dy itself. The output of a relu says as much as its slope, which is 1
// where that is positive and else 0.
struct RowSums {
  Tensor dy;                                 // [rows, N], contiguous
  Tensor slope;                              // as dy: the product's `derivative`; or undefined
  bool of_relu = false;                      // slope is the output of a relu
  Activation activation = Activation::none;  // of the product that wrote it, and its bias
  Tensor bias;
  Tensor dsum;     // as dy, and may be dy itself; written where there is a slope
  Tensor dbias;    // [N] in the parameters' type; undefined: not wanted
  Tensor partial;  // workspace

  Cost cost() const {
    const bool active = slope.defined();
    return {(active ? 2 : 1) * backend::count_of(dy), (active ? 3 : 1) * backend::bytes_of(dy)};
  }
};

// Products whose left sides have one type, and sums that none of them reads, as one piece of work.
// A product may add to the c of an earlier one. Either may be missing, not both.
struct ProductsCall {
  static constexpr const char* kName = "linear";
  std::span<Product> products;
  std::span<RowSums> sums;
  Tensor room = {};  // workspace of the products, one after the other

  const Tensor& output() const { return products.empty() ? sums[0].dy : products[0].c; }
  // Each of them on its own: the time of a plan is that of its pieces.
  bool charge(Device device) const noexcept {
    bool runs = false;
    for (const RowSums& s : sums) runs = meta::charge(device, s.cost());
    for (const Product& p : products) runs = meta::charge(device, p.cost());
    return runs;
  }
};

}  // namespace heddle::ops
