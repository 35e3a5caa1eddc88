// heddle bench: measures this machine and Heddle on it.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench/attention.h"
#include "bench/rival.h"
#include "bench/roofline.h"
#include "command.h"
#include "heddle/runtime.h"
#include "help/help.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"

namespace heddle::cli::bench_command {

namespace {

using bench::GemmFigure;
using bench::Roofline;
using nlohmann::json;

std::unique_ptr<bench::TorchRival> start_rival(const BenchArguments& arguments) {
  if (arguments.torch.empty()) return nullptr;
  auto rival = std::make_unique<bench::TorchRival>(arguments.torch, threads());
  std::cerr << tr("beside PyTorch {}", rival->version()) << "\n";
  return rival;
}

void declare_kernel_bench(CLI::App& command, BenchArguments& arguments, int rounds) {
  declare_bench(command, arguments, rounds);
  command.add_option("--dtype", arguments.dtype, "measure operands of one type only")
      ->check(CLI::IsMember({to_string(DType::bf16), to_string(DType::f32)}));
}

std::optional<DType> wanted_dtype(const BenchArguments& arguments) {
  if (arguments.dtype.empty()) return std::nullopt;
  return dtype_from_name(arguments.dtype);
}

json to_json(const GemmFigure& f) {
  json j = {{"m", f.m},
            {"n", f.n},
            {"k", f.k},
            {"dtype", to_string(f.dtype)},
            {"pass", bench::to_string(f.pass)},
            {"flops_per_s", f.flops_per_s}};
  if (f.peak_flops_per_s > 0) {
    j["share_of_peak"] = f.share_of_peak;
    j["peak_flops_per_s"] = f.peak_flops_per_s;
  }
  if (f.torch_flops_per_s) j["torch_flops_per_s"] = *f.torch_flops_per_s;
  if (f.times_torch) j["times_torch"] = *f.times_torch;
  return j;
}

json to_json(const Roofline& r) {
  json peaks = json::object();
  for (const bench::Peak& p : r.peaks) peaks[p.name] = p.flops_per_s;
  json gemm = json::array();
  for (const GemmFigure& f : r.gemm) gemm.push_back(to_json(f));
  json j = {{"machine", {{"cpu", r.cpu}, {"threads", r.threads}, {"isa", r.isa}}},
            {"isa_in_use", instruction_set()},
            {"peaks", peaks},
            {"gemm", gemm}};
  if (r.read_bandwidth) j["read_bandwidth"] = *r.read_bandwidth;
  if (r.copy_bandwidth) j["copy_bandwidth"] = *r.copy_bandwidth;
  return j;
}

void print(const Roofline& r, bool with_torch) {
  fmt::print("{}\n", r.threads == 1
                         ? tr("{}, 1 thread, using {}", r.cpu, instruction_set())
                         : tr("{}, {} threads, using {}", r.cpu, r.threads, instruction_set()));
  for (const bench::Peak& p : r.peaks)
    fmt::print("  {:12} {:8.1f} GFLOP/s\n", p.name, p.flops_per_s / 1e9);
  const auto print_rate = [](const char* name, const std::optional<double>& rate) {
    if (rate)
      fmt::print("  {} {:8.1f} GB/s\n", padded(tr(name), 12), *rate / 1e9);
    else
      fmt::print("  {} {}\n", padded(tr(name), 12), tr("not measured: memory is short"));
  };
  print_rate(mark("read"), r.read_bandwidth);
  print_rate(mark("copy"), r.copy_bandwidth);
  fmt::print("\n");
  fmt::print("{:>6} {:>6} {:>6}  {} {} {:>9} {}", "m", "n", "k", padded(tr("type"), 5),
             padded(tr("pass"), 12), "GFLOP/s", padded_left(tr("of peak"), 7));
  if (with_torch) fmt::print("  {:>6}  {}", "torch", padded_left(tr("times"), 5));
  fmt::print("\n");
  for (const GemmFigure& f : r.gemm) {
    fmt::print("{:6} {:6} {:6}  {:5} {:12} {:9.1f}", f.m, f.n, f.k, to_string(f.dtype),
               bench::to_string(f.pass), f.flops_per_s / 1e9);
    if (f.peak_flops_per_s > 0) fmt::print(" {:6.1f}%", 100 * f.share_of_peak);
    if (f.torch_flops_per_s)
      fmt::print("  {:6.1f}  {:5.2f}", *f.torch_flops_per_s / 1e9, *f.times_torch);
    fmt::print("\n");
  }
}

void run_roofline(const BenchArguments& arguments) {
  const auto rival = start_rival(arguments);
  bench::RooflineOptions options;
  options.rounds = arguments.rounds;
  options.quick = arguments.quick;
  options.progress = show_bench_progress;
  options.rival = rival.get();
  options.only = wanted_dtype(arguments);
  const Roofline r = bench::measure_roofline(options);
  if (arguments.as_json)
    cli::print_json(to_json(r));
  else
    print(r, rival != nullptr);
}

void add_roofline(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "roofline", "peaks of this machine, and our matrix products as a share of them");
  command->footer("Example: heddle bench roofline --torch python3 --json > roofline.json");
  auto arguments = std::make_shared<BenchArguments>();
  declare_kernel_bench(*command, *arguments, 9);
  command->callback([arguments] { run_roofline(*arguments); });
}

json to_json(const bench::AttentionFigure& f) {
  const bench::AttentionCase& c = f.what;
  json j = {{"n", c.n},
            {"batch", c.batch},
            {"heads", c.heads},
            {"kv_heads", c.kv_heads},
            {"head_width", c.head_width},
            {"dtype", to_string(c.dtype)},
            {"score", c.additive ? "additive" : "scaled-dot"},
            {"mask", c.causal ? "causal" : "none"},
            {"pass", c.both ? "both" : "forward"},
            {"seconds", f.seconds},
            {"extra_bytes", f.extra_bytes},
            {"flops_per_s", f.flops_per_s}};
  if (f.share_of_peak > 0) j["share_of_peak"] = f.share_of_peak;
  if (c.additive) j["score_width"] = c.score_width;
  if (c.look_back) j["look_back"] = *c.look_back;
  if (f.torch_seconds) j["torch_seconds"] = *f.torch_seconds;
  if (f.times_torch) j["times_torch"] = *f.times_torch;
  return j;
}

// 80 columns by themselves, 95 beside PyTorch; a terminal that is narrower has PyTorch's figures in
// place of the rates, which follow from the times.
constexpr std::size_t kBesideTorch = 95;

void print_attention_head(bool rates, bool torch) {
  fmt::print("{:>5} {} {} {} {} {} {:>8}", "n", padded_left(tr("heads"), 6), padded(tr("type"), 4),
             padded(tr("score"), 10), padded(tr("mask"), 9), padded(tr("pass"), 7), "ms");
  if (rates) fmt::print(" {:>7} {}", "GFLOP/s", padded_left(tr("of peak"), 7));
  fmt::print(" {}", padded_left(tr("extra MB"), 8));
  if (torch) fmt::print(" {:>8} {}", "torch ms", padded_left(tr("times"), 5));
  fmt::print("\n");
}

void print(const bench::AttentionFigure& f, bool rates) {
  const bench::AttentionCase& c = f.what;
  const std::string mask = c.look_back ? fmt::format("back {}", *c.look_back)
                                       : std::string(c.causal ? "causal" : "none");
  fmt::print("{:5} {:>6} {:4} {:10} {:9} {:7} {:8.3f}", c.n,
             fmt::format("{}x{}", c.heads, c.head_width), to_string(c.dtype),
             c.additive ? "additive" : "scaled-dot", mask, c.both ? "both" : "forward",
             1e3 * f.seconds);
  if (rates) fmt::print(" {:7.1f} {:6.1f}%", f.flops_per_s / 1e9, 100 * f.share_of_peak);
  fmt::print(" {:8.1f}", static_cast<double>(f.extra_bytes) / 1e6);
  if (f.times_torch) fmt::print(" {:8.3f} {:5.2f}", 1e3 * *f.torch_seconds, *f.times_torch);
  fmt::print("\n");
}

void run_attention(const BenchArguments& arguments) {
  const auto rival = start_rival(arguments);
  bench::AttentionBenchOptions options;
  options.rounds = arguments.rounds;
  options.quick = arguments.quick;
  options.progress = show_bench_progress;
  options.rival = rival.get();
  options.only = wanted_dtype(arguments);
  const auto figures = bench::measure_attention(options);
  if (arguments.as_json) {
    json cases = json::array();
    for (const auto& f : figures) cases.push_back(to_json(f));
    cli::print_json(json{{"cases", cases}});
    return;
  }
  const bool rates = rival == nullptr || terminal_columns() >= kBesideTorch;
  print_attention_head(rates, rival != nullptr);
  for (const auto& f : figures) print(f, rates);
}

void add_attention(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("attention", "time and extra memory of attention, by length and mask");
  command->footer("Example: heddle bench attention --quick --torch python3");
  auto arguments = std::make_shared<BenchArguments>();
  declare_kernel_bench(*command, *arguments, 5);
  command->callback([arguments] { run_attention(*arguments); });
}

}  // namespace

void declare_bench(CLI::App& command, BenchArguments& arguments, int rounds) {
  arguments.rounds = rounds;
  command.add_flag("--json", arguments.as_json, "one JSON document on standard output");
  command.add_flag("--quick", arguments.quick, "leave the large shapes out");
  command.add_option("--rounds", arguments.rounds, "measure in turns, so often; medians count")
      ->check(CLI::Range(1, 1000));
  command
      .add_option("--torch", arguments.torch,
                  "a Python with PyTorch, measured beside us in the same rounds")
      ->type_name("PYTHON");
}

void declare_model_bench(CLI::App& command, BenchArguments& arguments, int rounds) {
  declare_bench(command, arguments, rounds);
  command.add_option("--model", arguments.model, "measure one model only")
      ->check(CLI::IsMember({bench::kTiny.name, bench::kGpt2.name}));
}

bench::ModelBenchOptions model_options(const BenchArguments& arguments) {
  bench::ModelBenchOptions options;
  options.rounds = arguments.rounds;
  options.quick = arguments.quick;
  options.only = arguments.model;
  options.torch = arguments.torch;
  options.torch_mode = arguments.torch_mode;
  options.device = parse_device(arguments.device);
  options.batch = arguments.batch;
  options.context = arguments.context;
  options.progress = show_bench_progress;
  return options;
}

void check_rival(const BenchArguments& arguments) { start_rival(arguments); }

void show_bench_progress(const std::string& what) { std::cerr << tr("measuring {}", what) << "\n"; }

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "benchmarks of this machine and of Heddle on it");
  command->require_subcommand(1);
  command->footer("Example: heddle bench roofline");
  add_roofline(*command);
  add_attention(*command);
  add_bench_train(*command);
  add_bench_decode(*command);
}

}  // namespace heddle::cli::bench_command
