#include "ops/concat/concat.h"

#include <memory>
#include <string>
#include <utility>

#include "ops/copy/copy.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// record() for lists whose length the call decides.
template <class F>
void record_list(const char* op, std::span<const Tensor> inputs, std::span<Tensor> outputs, F vjp) {
  std::vector<const Tensor*> from;
  std::vector<Tensor*> to;
  for (const Tensor& x : inputs) from.push_back(&x);
  for (Tensor& y : outputs) to.push_back(&y);
  autograd::record_vjp(op, from, to, std::make_unique<autograd::LambdaVjp<F>>(std::move(vjp)));
}

bool any_tracked(std::span<const Tensor> tensors) {
  bool any = false;
  for (const Tensor& x : tensors) any = tracked({&x}) || any;  // each is asked: it may be refused
  return any;
}

// The joint shape; throws where a part does not fit the first one.
Shape joint_shape(std::span<const Tensor> parts, int dim) {
  Shape shape = parts[0].shape();
  shape[dim] = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = "parts[" + std::to_string(i) + "]";
    const Arg part{"concat", name.c_str(), parts[i]};
    check_dtype(part, parts[0].dtype());
    check_rank(part, shape.rank());
    check_same_device(part, parts[0]);
    Shape wanted = parts[0].shape();
    wanted[dim] = parts[i].shape()[dim];
    check_shape(part, wanted);
    shape[dim] += wanted[dim];
  }
  return shape;
}

}  // namespace

// d(part i) = its slice of dy
Tensor concat(std::span<const Tensor> parts, int dim) {
  check_condition(!parts.empty(), "concat", "parts", "one tensor or more", "none");
  check_defined({"concat", "parts[0]", parts[0]});
  check_rank_at_least({"concat", "parts[0]", parts[0]}, 1);
  const int d = normalize_dim(dim, parts[0].rank(), "concat");
  Tensor y = Tensor::empty(joint_shape(parts, d), parts[0].dtype(), parts[0].device());
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (const Tensor& x : parts) {
    sizes.push_back(x.shape()[d]);
    Tensor place = views::slice(y, d, begin, begin + sizes.back());
    copy_into(place, x.detach());
    begin += sizes.back();
  }
  if (any_tracked(parts))
    record_list("concat", parts, std::span(&y, 1), [sizes, d](VjpContext& c) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < sizes.size(); at += sizes[i], ++i)
        if (c.needs(static_cast<int>(i)))
          c.add(static_cast<int>(i), views::slice(c.cotangent(), d, at, at + sizes[i]));
    });
  return y;
}

// dx = the parts' cotangents one after the other; 0 where nothing depends on a part
std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim) {
  check_defined({"split", "x", x});
  check_rank_at_least({"split", "x", x}, 1);
  const int d = normalize_dim(dim, x.rank(), "split");
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    // Compared with what is left: their sum could be more than a number holds.
    if (size < 0 || size > x.shape()[d] - total)
      fail(ErrorCode::shape_mismatch, "split", "argument sizes",
           "0 or more each, " + std::to_string(x.shape()[d]) + " together",
           std::to_string(size) + " behind " + std::to_string(total));
    total += size;
  }
  if (total != x.shape()[d])
    fail(ErrorCode::shape_mismatch, "split", "argument sizes: their sum",
         std::to_string(x.shape()[d]) + ", the size of dimension " + std::to_string(d),
         std::to_string(total));
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(views::slice(x, d, begin, begin + size));
    begin += size;
  }
  if (!parts.empty() && tracked({&x}))
    record_list("split", std::span(&x, 1), parts,
                [from = x.shape(), dtype = x.dtype(), device = x.device(), d,
                 lengths = std::vector(sizes.begin(), sizes.end())](VjpContext& c) {
                  bool all = true;
                  for (std::size_t i = 0; i < lengths.size(); ++i)
                    all = all && c.cotangent(static_cast<int>(i)).defined();
                  Tensor dx =
                      all ? Tensor::empty(from, dtype, device) : Tensor::zeros(from, dtype, device);
                  std::int64_t at = 0;
                  for (std::size_t i = 0; i < lengths.size(); at += lengths[i], ++i) {
                    const Tensor& dy = c.cotangent(static_cast<int>(i));
                    if (!dy.defined()) continue;
                    Tensor place = views::slice(dx, d, at, at + lengths[i]);
                    copy_into(place, dy);
                  }
                  c.add(0, dx);
                });
  return parts;
}

}  // namespace heddle::ops
