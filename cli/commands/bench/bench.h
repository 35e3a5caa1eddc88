// Shared by the benchmarks of `heddle bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "bench/models.h"

namespace heddle::cli::bench_command {

struct BenchArguments {
  bool as_json = false;
  bool quick = false;
  int rounds = 0;
  std::string torch;
  std::string model;       // of the benchmarks of whole models
  std::string torch_mode;  // of the benchmark of training, as the next three
  std::string device = "cpu";
  std::int64_t batch = 0, context = 0;
  std::string dtype;  // of the benchmarks of kernels
};

// Declares the options; `rounds` is their default.
void declare_bench(CLI::App& command, BenchArguments& arguments, int rounds);

// The same and --model, for benchmarks of whole models.
void declare_model_bench(CLI::App& command, BenchArguments& arguments, int rounds);
bench::ModelBenchOptions model_options(const BenchArguments& arguments);

// A --torch that cannot work is refused here, before minutes are spent on our own figures.
void check_rival(const BenchArguments& arguments);

void show_bench_progress(const std::string& what);

void add_bench_decode(CLI::App& bench);
void add_bench_train(CLI::App& bench);

}  // namespace heddle::cli::bench_command
