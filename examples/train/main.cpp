// A language model of bytes, from nothing, in forty lines:
//     train TEXT [STEPS] [WEIGHTS]
#include <heddle/heddle.h>

#include <cstdlib>
#include <iostream>

using namespace heddle;

struct Tiny {
  nn::Embedding embed;
  nn::Stack stack;
  nn::Linear head;

  explicit Tiny(const nn::Scope& p)
      : embed({.rows = 256, .width = 64}, p / "embed"),
        stack({.layers = 2,
               .width = 64,
               .attention = {.heads = 4, .causal = true, .position = nn::RopePosition{}}},
              p / "stack"),
        head({.inputs = 64, .outputs = 256}, p / "head") {}

  // x, y: [B, T]
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return head.cross_entropy(stack.forward(embed.forward(x)), y);
  }
};

int main(int count, char** arguments) try {
  if (count < 2) return std::cerr << "train TEXT [STEPS] [WEIGHTS]\n", 2;
  const int steps = count > 2 ? std::atoi(arguments[2]) : 200;
  nn::Parameters parameters({.seed = 1});
  const Tiny model(parameters.root());
  optim::AdamW adamw(parameters, {.rate = 3e-3, .clip = 1});
  const data::Windows text(arguments[1], text::bytes(), {.context = 64, .batch = 16});
  for (int step = 1; step <= steps; ++step) {
    Tape tape;
    const auto [x, y] = text.batch(step);
    const Tensor loss = model.loss(x, y);
    tape.backward(loss);
    adamw.step();
    if (step % 20 == 0) std::cout << "step " << step << "  loss " << loss.item() << "\n";
  }
  if (count > 3) nn::save(arguments[3], parameters);
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
