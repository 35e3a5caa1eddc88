// Trains a small byte-level decoder on a text file and prints what it then writes by itself.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <string>

#include "heddle/runtime.h"
#include "heddle/tape.h"
#include "model.h"
#include "text.h"

namespace byte_decoder {
namespace {

using heddle::RandomKey;
using heddle::Tensor;
namespace ops = heddle::ops;

struct Arguments {
  std::string text;
  std::string prompt = "And God said";
  std::string precision = "f32";
  std::int64_t steps = 1000;
  std::int64_t batch = 16;
  std::int64_t sample = 400;
  std::uint64_t seed = 1;
  double learning_rate = 2e-3;
  double temperature = 0.7;
  Config model;
};

volatile std::sig_atomic_t interrupted = 0;

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

// Warm-up, then a cosine down to a tenth.
double rate_at(std::int64_t step, const Arguments& a) {
  const double warm = std::min(1.0, static_cast<double>(step) / 50);
  const double progress = static_cast<double>(step) / static_cast<double>(a.steps);
  return a.learning_rate * warm * (0.55 + 0.45 * std::cos(3.14159265358979 * progress));
}

class Optimizer {
 public:
  explicit Optimizer(const std::vector<Tensor>& parameters) {
    const heddle::PurposeScope scope(heddle::Purpose::optimizer);
    for (const Tensor& p : parameters) {
      first_.push_back(Tensor::zeros(p.shape()));
      second_.push_back(Tensor::zeros(p.shape()));
    }
  }

  void step(std::vector<Tensor>& parameters, std::int64_t step, double rate) {
    std::vector<Tensor> grads;
    for (const Tensor& p : parameters) grads.push_back(p.grad());
    ops::AdamWOptions options;
    options.lr = rate;
    options.beta2 = 0.98;
    options.weight_decay = 0.1;
    options.step = step;
    options.grad_scale = ops::clip_scale(ops::global_norm(grads), 1.0);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].rank() < 2) options.weight_decay = 0;  // gains are not decayed
      ops::adamw(parameters[i], grads[i], first_[i], second_[i], options);
      options.weight_decay = 0.1;
      parameters[i].clear_grad();
    }
  }

 private:
  std::vector<Tensor> first_, second_;
};

class Progress {
 public:
  Progress(std::int64_t steps, std::int64_t tokens_per_step)
      : steps_(steps), tokens_(tokens_per_step), start_(now()), live_(isatty(STDERR_FILENO) != 0) {}

  void show(std::int64_t step, double loss) {
    smooth_ = step == 1 ? loss : 0.95 * smooth_ + 0.05 * loss;
    if (!live_ && step % 50 != 0 && step != steps_) return;
    const double elapsed = now() - start_;
    const double rate = static_cast<double>(step * tokens_) / elapsed;
    const double left = elapsed / static_cast<double>(step) * static_cast<double>(steps_ - step);
    const double megabytes =
        static_cast<double>(heddle::memory_use(heddle::Device::cpu).peak) / 1048576;
    fmt::print(stderr, "{}step {:5}/{}  loss {:.3f}  {:6.0f} tokens/s  {:.0f} MB  {:.0f} s left{}",
               live_ ? "\r" : "", step, steps_, smooth_, rate, megabytes, left,
               live_ ? "   " : "\n");
    if (live_ && step == steps_) fmt::print(stderr, "\n");
    std::fflush(stderr);
  }

 private:
  std::int64_t steps_, tokens_;
  double start_, smooth_ = 0;
  bool live_;
};

void train(Decoder& model, const Text& text, const Arguments& a) {
  Optimizer optimizer(model.parameters());
  Progress progress(a.steps, a.batch * a.model.context);
  for (std::int64_t step = 1; step <= a.steps && interrupted == 0; ++step) {
    const Batch batch = text.training_batch(a.batch, {a.seed, static_cast<std::uint32_t>(step), 1});
    heddle::Tape tape;
    const Tensor loss = model.loss(batch.inputs, batch.targets);
    tape.backward(loss);
    if (!std::isfinite(loss.item()))
      heddle::fail(heddle::ErrorCode::invalid_argument, "training",
                   "the loss is not finite at step " + std::to_string(step),
                   "a lower --learning-rate");
    optimizer.step(model.parameters(), step, rate_at(step, a));
    progress.show(step, loss.item());
  }
}

// Draws from softmax(logits / temperature) with a uniform number.
int draw(const std::vector<float>& logits, double temperature, float uniform) {
  const float top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp(static_cast<double>(logit - top) / temperature));
    sum += weights.back();
  }
  double left = static_cast<double>(uniform) * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int>(i);
  }
  return static_cast<int>(weights.size()) - 1;
}

std::string write(const Decoder& model, const Arguments& a) {
  std::string text = a.prompt;
  for (std::int64_t i = 0; i < a.sample; ++i) {
    const auto length =
        std::min<std::int64_t>(static_cast<std::int64_t>(text.size()), a.model.context);
    Tensor window = Tensor::empty({1, length}, heddle::DType::i32);
    for (std::int64_t t = 0; t < length; ++t)
      window.mutable_data<std::int32_t>()[t] = static_cast<unsigned char>(
          text[text.size() - static_cast<std::size_t>(length) + static_cast<std::size_t>(t)]);
    const auto block = heddle::philox({a.seed, 0, 2}, static_cast<std::uint64_t>(i));
    text += static_cast<char>(
        draw(model.next_logits(window), a.temperature, heddle::unit_float(block[0])));
  }
  return text;
}

void run(const Arguments& a) {
  const Text text(a.text, a.model.context);
  Decoder model(a.model, a.seed);
  fmt::print(stderr, "{} bytes of text; {} parameters; {} threads, {}, {}\n", text.bytes(),
             model.parameter_count(), heddle::threads(), heddle::instruction_set(), a.precision);
  train(model, text, a);
  if (interrupted != 0) fmt::print(stderr, "\ninterrupted: this is what it learned so far\n");
  const Batch held_out = text.held_out_batch(32);
  const heddle::NoGrad no_grad;
  const double loss = model.loss(held_out.inputs, held_out.targets).item();
  fmt::print(stderr, "held-out loss {:.3f} nats per byte ({:.2f} bits)\n\n", loss,
             loss / std::log(2.0));
  fmt::print("{}\n", write(model, a));
}

void declare(CLI::App& app, Arguments& a) {
  app.add_option("text", a.text, "the text to learn from")->required();
  app.add_option("--steps", a.steps, "training steps")->check(CLI::Range(1, 10000000));
  app.add_option("--batch", a.batch, "windows per step")->check(CLI::Range(1, 4096));
  app.add_option("--context", a.model.context, "bytes per window")->check(CLI::Range(1, 4096));
  app.add_option("--layers", a.model.layers)->check(CLI::Range(1, 64));
  app.add_option("--width", a.model.width)->check(CLI::Range(1, 4096));
  app.add_option("--heads", a.model.heads)->check(CLI::Range(1, 64));
  app.add_option("--precision", a.precision, "of activations: f32 or bf16")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--learning-rate", a.learning_rate)->check(CLI::PositiveNumber);
  app.add_option("--temperature", a.temperature)->check(CLI::PositiveNumber);
  app.add_option("--prompt", a.prompt, "what the sample begins with")
      ->check([](const std::string& s) { return std::string(s.empty() ? "is empty" : ""); });
  app.add_option("--sample", a.sample, "bytes to write afterwards")->check(CLI::Range(0, 100000));
  app.add_option("--seed", a.seed, "the same seed gives the same bits");
}

}  // namespace
}  // namespace byte_decoder

int main(int argc, char** argv) {
  CLI::App app("Trains a small byte-level decoder on a text file and lets it write.");
  byte_decoder::Arguments arguments;
  byte_decoder::declare(app, arguments);
  try {
    app.parse(argc, argv);
    std::signal(SIGINT, [](int) { byte_decoder::interrupted = 1; });
    arguments.model.precision = heddle::dtype_from_name(arguments.precision);
    byte_decoder::run(arguments);
    return byte_decoder::interrupted != 0 ? 130 : 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "byte_decoder: {}\n", e.what());
    return 2;
  }
}
