// What the benchmarks of `heddle bench` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace heddle::cli {

struct BenchArguments {
  bool as_json = false;
  bool quick = false;
  int rounds = 0;
  std::string torch;
};

// Declares the options; `rounds` is their default.
void declare_bench(CLI::App& command, BenchArguments& arguments, int rounds);

void show_bench_progress(const std::string& what);

void add_bench_decode(CLI::App& bench);
void add_bench_train(CLI::App& bench);

}  // namespace heddle::cli
