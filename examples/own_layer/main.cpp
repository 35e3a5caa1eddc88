// A layer of one's own beside those of Heddle: a gated residual, x + sigmoid(g(x)) · f(x), where f
// is a feed-forward layer of the product and g a linear one. It learns to add two numbers that
// stand far apart in a vector.
#include <heddle/heddle.h>

#include <iostream>

using namespace heddle;

class GatedResidual {
 public:
  GatedResidual(std::int64_t width, const nn::Scope& scope)
      : norm_({.kind = nn::NormKind::rms, .width = width}, scope / "norm"),
        ffn_({.kind = nn::FfnKind::swiglu, .width = width, .hidden = 2 * width}, scope / "ffn"),
        gate_({.inputs = width, .outputs = width}, scope / "gate") {}

  Tensor forward(const Tensor& x) const {  // [..., C] -> [..., C]
    const Tensor y = norm_.forward(x);
    return x + ops::sigmoid(gate_.forward(y)) * ffn_.forward(y);
  }

 private:
  nn::Norm norm_;
  nn::FeedForward ffn_;
  nn::Linear gate_;
};

int main() try {
  constexpr std::int64_t kWidth = 16, kRows = 64;
  nn::Parameters parameters({.seed = 3});
  const nn::Scope root = parameters.root();
  const GatedResidual first(kWidth, root / "first"), second(kWidth, root / "second");
  const nn::Linear out({.inputs = kWidth, .outputs = 1}, root / "out");
  std::cout << parameters.count() << " parameters, from " << parameters.all().front().name << " to "
            << parameters.all().back().name << "\n";

  optim::AdamW adamw(parameters, {.rate = 1e-2});
  double begin = 0, end = 0;
  for (std::uint32_t step = 1; step <= 300; ++step) {
    const Tensor x = ops::random_normal({kRows, kWidth}, 0, 1, {.seed = 1, .step = step});
    const Tensor sum = ops::slice(x, 1, 0, 1) + ops::slice(x, 1, kWidth - 1, kWidth);  // [B, 1]
    Tape tape;
    const Tensor error = out.forward(second.forward(first.forward(x))) - sum;
    const Tensor loss = ops::mean_all(error * error);
    tape.backward(loss);
    adamw.step();
    end = loss.item();
    if (step == 1) begin = end;
  }
  std::cout << "mean squared error " << begin << " -> " << end << "\n";
  return end < 0.05 * begin ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
