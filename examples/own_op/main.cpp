// An op of one's own with its gradient: the squared hinge, y = max(0, 1 - x)². Forward and backward
// are written with what Heddle has; the tape takes it like any other op.
#include <heddle/heddle.h>

#include <cmath>
#include <iostream>

using namespace heddle;

// dy/dx = -2 · max(0, 1 - x)
Tensor squared_hinge(const Tensor& x) {
  Tensor slack, y;
  {
    const NoGrad by_hand;  // the parts record nothing: the gradient below is for all of them
    slack = ops::relu(1 - x);
    y = slack * slack;
  }
  if (autograd::tracked({&x}))
    autograd::record("squared_hinge", {&x}, {&y},
                     [slack = autograd::Saved(slack)](VjpContext& context) {
                       context.add(0, -2 * slack.get() * context.cotangent());
                     });
  return y;
}

int main() try {
  Tensor x = Tensor::from({-1, 0.25f, 2});
  x.set_requires_grad(true);
  Tape tape;
  const Tensor y = squared_hinge(x);
  tape.backward(ops::sum_all(y));
  std::cout << "y     " << y << "\ndy/dx " << x.grad() << "\n";

  // Is it right? Differences of the op itself say what the gradient must be.
  const double step = 1e-3;
  const auto total = [](const Tensor& at) { return ops::sum_all(squared_hinge(at)).item(); };
  const std::vector<float> gradient = x.grad().to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    Tensor up = ops::clone(x.detach()), down = ops::clone(x.detach());
    up.mutable_data<float>()[i] += static_cast<float>(step);
    down.mutable_data<float>()[i] -= static_cast<float>(step);
    const double expected = (total(up) - total(down)) / (2 * step);
    if (std::abs(expected - gradient[static_cast<std::size_t>(i)]) > 1e-2) {
      std::cerr << "element " << i << ": " << gradient[static_cast<std::size_t>(i)]
                << " where differences say " << expected << "\n";
      return 1;
    }
  }
  std::cout << "differences agree\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
