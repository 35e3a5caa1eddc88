// heddle bench train: whole training steps, beside PyTorch's.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench/train.h"
#include "language/language.h"
#include "print_json.h"
#include "report/page/numbers.h"

namespace heddle::cli::bench_command {

namespace {

using bench::TrainFigure;
using nlohmann::json;

json to_json(const TrainFigure& f) {
  json j = {{"name", f.name},
            {"precision", f.precision},
            {"parameters", f.parameters},
            {"tokens_per_s", f.tokens_per_s},
            {"step_seconds", f.step_seconds},
            {"flops_per_step", f.flops_per_step}};
  if (f.peak_bytes > 0) j["peak_bytes"] = f.peak_bytes;
  if (f.share_of_peak > 0) j["share_of_peak"] = f.share_of_peak;
  if (f.torch)
    j["torch"] = {{"mode", f.torch->mode},
                  {"tokens_per_s", f.torch->tokens_per_s},
                  {"peak_bytes", f.torch->peak_bytes}};
  if (f.times_torch) j["times_torch"] = *f.times_torch;
  return j;
}

void print(const TrainFigure& f) {
  const std::string parameters = report::count_text(static_cast<double>(f.parameters));
  const std::string memory = report::bytes_text(static_cast<double>(f.peak_bytes));
  if (f.share_of_peak > 0)
    fmt::print("{}\n", tr("{} ({} parameters, {}): {:.2f} ms a step, {:.0f} tokens/s, {:.0f}% "
                          "of peak, {}",
                          f.name, parameters, f.precision, 1e3 * f.step_seconds, f.tokens_per_s,
                          100 * f.share_of_peak, memory));
  else
    fmt::print("{}\n", tr("{} ({} parameters, {}): {:.2f} ms a step, {:.0f} tokens/s, {}", f.name,
                          parameters, f.precision, 1e3 * f.step_seconds, f.tokens_per_s, memory));
  if (f.torch)
    fmt::print("  {}\n",
               tr("PyTorch, {}: {:.0f} tokens/s, {}; Heddle is {:.2f} times as fast", f.torch->mode,
                  f.torch->tokens_per_s,
                  report::bytes_text(static_cast<double>(f.torch->peak_bytes)), *f.times_torch));
}

void run_train(const BenchArguments& arguments) {
  check_rival(arguments);
  const auto figures = bench::measure_training(model_options(arguments));
  if (!arguments.as_json) {
    for (const TrainFigure& f : figures) print(f);
    return;
  }
  json cases = json::array();
  for (const TrainFigure& f : figures) cases.push_back(to_json(f));
  cli::print_json(json{{"cases", cases}});
}

}  // namespace

void add_bench_train(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "train", "training steps of a tiny decoder and of GPT-2's smallest, in tokens per second");
  command->footer("Example: heddle bench train --quick --torch python3");
  auto arguments = std::make_shared<BenchArguments>();
  declare_model_bench(*command, *arguments, 5);
  command
      ->add_option("--torch-mode", arguments->torch_mode,
                   "PyTorch in one mode only; without it, in the fastest of all")
      ->check(CLI::IsMember(bench::kTorchModes))
      ->needs("--torch");
  command->add_option("--device", arguments->device, "what computes: cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->excludes("--torch");
  command->add_option("--batch", arguments->batch, "sequences of a step")
      ->check(CLI::PositiveNumber);
  command->add_option("--context", arguments->context, "tokens of each of them")
      ->check(CLI::PositiveNumber);
  command->callback([arguments] { run_train(*arguments); });
}

}  // namespace heddle::cli::bench_command
