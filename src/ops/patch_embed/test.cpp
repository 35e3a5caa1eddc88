#include "backend/cpu/gemm/product_kernels.h"
#include "harness/harness.h"
#include "harness/values.h"
#include "ops/patch_embed/patch_embed.h"

namespace heddle::harness::patch_embed_cases {
namespace {

std::size_t at(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<std::size_t>(((a * x.size(1) + b) * x.size(2) + c) * x.size(3) + d);
}

// The definition: a convolution with stride P, Q.
Tensor convolution(const Tensor& images, const Tensor& weight, const Tensor& bias) {
  const std::int64_t width = weight.size(0), p = weight.size(2), q = weight.size(3);
  const std::int64_t down = images.size(2) / p, across = images.size(3) / q;
  const auto x = to_doubles(images), w = to_doubles(weight);
  const auto b =
      bias.defined() ? to_doubles(bias) : std::vector<double>(static_cast<std::size_t>(width), 0.0);
  std::vector<double> y;
  for (std::int64_t n = 0; n < images.size(0); ++n)
    for (std::int64_t token = 0; token < down * across; ++token)
      for (std::int64_t d = 0; d < width; ++d) {
        double sum = b[static_cast<std::size_t>(d)];
        for (std::int64_t c = 0; c < weight.size(1); ++c)
          for (std::int64_t i = 0; i < p; ++i)
            for (std::int64_t j = 0; j < q; ++j)
              sum += x[at(images, n, c, token / across * p + i, token % across * q + j)] *
                     w[at(weight, d, c, i, j)];
        y.push_back(sum);
      }
  return make_tensor({images.size(0), down * across, width}, DType::f64, y);
}

void add(const char* name, const Shape& images, const Shape& weight, bool bias = true) {
  Case c;
  c.op = "patch_embed";
  c.name = name;
  c.inputs = {act(images), param(weight)};
  if (bias) c.inputs.push_back(param({weight[0]}));
  const auto call = [](auto op) {
    return [op](std::span<const Tensor> in) {
      return Tensors{op(in[0], in[1], in.size() > 2 ? in[2] : Tensor())};
    };
  };
  c.run = call(ops::patch_embed);
  c.reference = call(convolution);
  c.reduction =
      std::max({std::int64_t{1}, elements_of(weight) / std::max<std::int64_t>(weight[0], 1),
                weight[0], elements_of(images) / 4});
  add_case(c);
}

const bool registered = [] {
  add("one pixel", {1, 1, 1, 1}, {1, 1, 1, 1});
  add("square", {2, 3, 8, 8}, {5, 3, 4, 4});
  add("oblong", {2, 3, 6, 10}, {7, 3, 3, 2});
  add("no bias", {1, 2, 4, 6}, {3, 2, 2, 3}, false);
  add("one patch", {3, 1, 5, 7}, {4, 1, 5, 7});
  add("no images", {0, 3, 4, 4}, {5, 3, 2, 2});
  add("several chunks", {2, 3, 56, 64}, {20, 3, 8, 8});

  using K = cpu::ProductKernels;
  add_kernel_mutant<K>("patch_embed", "the bias is forgotten", [](K& k) {
    k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      b.epilogue.bias = nullptr;
      sound<K>().run(t, b);
    };
  });
  add_kernel_mutant<K>("patch_embed", "all pixels take the weight of the first", [](K& k) {
    k.pack_b = [](cpu::Operands t, std::int64_t depth, std::int64_t n, const cpu::MatrixRef& b,
                  void* to) {
      cpu::MatrixRef r = b;
      if (r.row_stride == 1 && depth > 1) r.row_stride = 0;
      sound<K>().pack_b(t, depth, n, r, to);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::patch_embed_cases
