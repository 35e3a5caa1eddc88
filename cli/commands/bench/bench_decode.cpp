// heddle bench decode: prompts and tokens, beside PyTorch's.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench/decode.h"
#include "language/language.h"
#include "print_json.h"
#include "report/page/numbers.h"

namespace heddle::cli::bench_command {

namespace {

using bench::DecodeFigure;
using nlohmann::json;

json to_json(const DecodeFigure& f) {
  json j = {{"name", f.name},
            {"precision", f.precision},
            {"parameters", f.parameters},
            {"prompt_tokens_per_s", f.prompt_tokens_per_s},
            {"decode_tokens_per_s", f.decode_tokens_per_s},
            {"bytes_per_token", f.bytes_per_token}};
  if (f.share_of_bandwidth) j["share_of_bandwidth"] = *f.share_of_bandwidth;
  if (f.peak_bytes > 0) j["peak_bytes"] = f.peak_bytes;
  if (f.torch)
    j["torch"] = {{"mode", f.torch->mode},
                  {"prompt_tokens_per_s", f.torch->prompt_tokens_per_s},
                  {"decode_tokens_per_s", f.torch->decode_tokens_per_s},
                  {"peak_bytes", f.torch->peak_bytes}};
  if (f.times_torch) j["times_torch"] = *f.times_torch;
  return j;
}

void print(const DecodeFigure& f) {
  std::string text = tr("{} ({} parameters, {}): {:.0f} tokens/s of a prompt, {:.1f} written",
                        f.name, report::count_text(static_cast<double>(f.parameters)), f.precision,
                        f.prompt_tokens_per_s, f.decode_tokens_per_s);
  if (f.share_of_bandwidth)
    text = tr("{}, {:.0f}% of the bandwidth", text, 100 * *f.share_of_bandwidth);
  fmt::print("{}\n", tr("{}, {}", text, report::bytes_text(static_cast<double>(f.peak_bytes))));
  if (f.torch)
    fmt::print("  {}\n",
               tr("PyTorch, {}: {:.0f} of a prompt, {:.1f} written, {}; Heddle "
                  "writes {:.2f} times as fast",
                  f.torch->mode, f.torch->prompt_tokens_per_s, f.torch->decode_tokens_per_s,
                  report::bytes_text(static_cast<double>(f.torch->peak_bytes)), *f.times_torch));
}

void run_decode(const BenchArguments& arguments) {
  check_rival(arguments);
  const auto figures = bench::measure_decoding(model_options(arguments));
  if (!arguments.as_json) {
    for (const DecodeFigure& f : figures) print(f);
    return;
  }
  json cases = json::array();
  for (const DecodeFigure& f : figures) cases.push_back(to_json(f));
  cli::print_json(json{{"cases", cases}});
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "decode",
      "a prompt of 128 tokens and 64 written behind it, by a tiny decoder and GPT-2's smallest");
  command->footer("Example: heddle bench decode --quick --torch python3");
  auto arguments = std::make_shared<BenchArguments>();
  declare_model_bench(*command, *arguments, 5);
  command->callback([arguments] { run_decode(*arguments); });
}

}  // namespace heddle::cli::bench_command
