// heddle export: a model for other systems.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "heddle/export.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "with_model.h"

namespace heddle::cli::export_command {

namespace {

struct Arguments {
  std::string model, to, out, type = "f32";
  bool as_json = false;
};

void run(const Arguments& a) {
  const TrainedModel model(a.model, DType::f32, Device::cpu, DType::f32);
  ExportOptions options;
  options.format = a.to == "gguf" ? ExportFormat::gguf : ExportFormat::hf;
  options.type = a.type;
  const ExportResult done = with_options_named([&] { return export_model(model, a.out, options); });
  if (a.as_json)
    return print_json(
        nlohmann::json{{"path", a.out}, {"family", done.family}, {"tensors", done.tensors}});
  std::cout << tr("{}: {} tensors, as family {}", a.out, done.tensors, done.family) << "\n";
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write a model for other systems");
  command->footer("Example: heddle export runs/llama-style --to gguf --out model.gguf --type q8_0");
  auto a = std::make_shared<Arguments>();
  command->add_option("model", a->model, "run directory, or a model of others")
      ->required()
      ->type_name("MODEL");
  command
      ->add_option("--to", a->to,
                   "hf: a directory that transformers loads; gguf: a file of llama.cpp")
      ->required()
      ->check(CLI::IsMember({"hf", "gguf"}));
  command->add_option("--out", a->out, "directory or file to write; it must not be there yet")
      ->required()
      ->type_name("PATH");
  command->add_option("--type", a->type,
                      "of the weights: f32, f16, bf16; in a GGUF file also q8_0, q4_0, q4_1, "
                      "q4_k, q6_k");
  command->add_flag("--json", a->as_json, "one JSON object");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::export_command
