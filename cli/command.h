// A command of the program: adds itself to the parser; the parser calls it back.
#pragma once

#include <CLI/CLI.hpp>

namespace heddle::cli {

// Thrown by a command that has said all there is to say: the status the program ends with.
struct ExitStatus {
  int code = 0;
};

void add_bench(CLI::App& app);
void add_check(CLI::App& app);
void add_classify(CLI::App& app);
void add_compare(CLI::App& app);
void add_data(CLI::App& app);
void add_eval(CLI::App& app);
void add_generate(CLI::App& app);
void add_info(CLI::App& app);
void add_inspect(CLI::App& app);
void add_lab(CLI::App& app);
void add_logits(CLI::App& app);
void add_plan(CLI::App& app);
void add_tag(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_train(CLI::App& app);
void add_translate(CLI::App& app);

}  // namespace heddle::cli
