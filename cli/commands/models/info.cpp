// heddle info: the machine as Heddle sees it.
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/routine.h"
#include "command.h"
#include "heddle/error.h"
#include "heddle/runtime.h"
#include "language/language.h"
#include "language/layout.h"
#include "pretrained/facts.h"
#include "print_json.h"
#include "report/page/numbers.h"
#include "tensor/engine.h"

namespace heddle::cli::info_command {

namespace {

using nlohmann::json;

// Kinds of devices that this build knows routines for.
constexpr std::array kKinds = {DeviceKind::cpu, DeviceKind::cuda};

// Which call has a routine of its own where; any other is computed by its op's reference there.
json calls_json() {
  json all = json::object();
  for (const backend::KnownCall& call : backend::known_calls()) {
    json on = json::array();
    for (const DeviceKind kind : kKinds)
      if (call.on[static_cast<int>(kind)]) on.push_back(to_string(kind));
    all[call.name] = on;
  }
  return all;
}

json devices_json() {
  json all = json::array();
  for (const DeviceKind kind : kKinds)
    for (int i = 0; i < kDevicesOfAKind; ++i) {
      const Device device{kind, static_cast<std::uint8_t>(i), kind};
      if (!has_engine(device)) continue;
      const Engine& engine = engine_of(device);
      json one = {{"device", to_string(device)},
                  {"name", kind == DeviceKind::cpu ? cpu_name() : engine.name()},
                  {"memory_bytes", engine.memory_bytes()}};
      for (const FoundLibrary& l : engine.libraries())
        one["libraries"][l.name] =
            l.version.empty() ? json{{"absent", l.absence}} : json{{"version", l.version}};
      all.push_back(one);
    }
  return all;
}

void print_calls() {
  std::cout << "\n" << padded(tr("routines of ops"), 34);
  for (const DeviceKind kind : kKinds) std::cout << padded(std::string(to_string(kind)), 12);
  std::cout << "\n";
  for (const backend::KnownCall& call : backend::known_calls()) {
    std::cout << padded(call.name, 34);
    for (const DeviceKind kind : kKinds)
      std::cout << padded(call.on[static_cast<int>(kind)] ? tr("own") : tr("reference"), 12);
    std::cout << "\n";
  }
  std::cout << tr("An op without a routine of its own on a device is computed there by its "
                  "definition, from ops that have one.")
            << "\n";
}

void print(bool as_json, bool ops) {
  if (as_json) {
    json document = {{"cpu", cpu_name()},
                     {"isa", available_instruction_sets()},
                     {"isa_in_use", instruction_set()},
                     {"threads", threads()},
                     {"devices", devices_json()}};
    if (ops) document["ops"] = calls_json();
    cli::print_json(document);
    return;
  }
  // Everything is asked for before anything is printed: a bad HEDDLE_ISA gives its message alone.
  const std::string in_use = instruction_set();
  const int count = threads();
  std::string sets;
  for (const std::string& isa : available_instruction_sets())
    sets += (sets.empty() ? "" : " ") + isa;
  const auto line = [](const std::string& name, const std::string& value) {
    std::cout << padded(name, 10) << value << "\n";
  };
  line(tr("cpu:"), cpu_name());
  line(tr("isa:"), tr("{} (in use: {})", sets, in_use));
  line(tr("threads:"), std::to_string(count));
  for (const json& d : devices_json()) {
    line(tr("device:"),
         tr("{} ({}, {})", d["device"].get<std::string>(), d["name"].get<std::string>(),
            report::bytes_text(d["memory_bytes"].get<double>())));
    const json libraries = d.value("libraries", json::object());
    for (const auto& [name, found] : libraries.items())
      line("", found.contains("version")
                   ? name + " " + found["version"].get<std::string>()
                   : tr("no {}: {}", name, tr(found["absent"].get<std::string>())));
  }
  if (!has_engine(Device::cuda())) line(tr("no cuda:"), tr(absence_of(DeviceKind::cuda)));
  if (ops) print_calls();
}

json model_json(const std::string& path, const pretrained::Facts& f) {
  json document = {{"model", path},
                   {"family", f.family},
                   {"parameters", f.parameters},
                   {"choices", json::object()},
                   {"types", json::object()},
                   {"tokenizer", f.tokenizer},
                   {"tokens", f.tokens},
                   {"templates", f.templates}};
  for (const auto& [key, value] : f.choices) document["choices"][key] = value;
  for (const auto& [name, type] : f.types)
    document["types"][name] = {{"tensors", type.tensors}, {"bytes", type.bytes}};
  if (!f.refusal.empty()) document["refused"] = f.refusal;
  return document;
}

// A model of others, read but for its weights.
void print_model(const std::string& path, bool as_json) {
  if (!pretrained::is_pretrained(path))
    fail(ErrorCode::invalid_argument, path, "is not a model that others trained",
         "a directory with a config.json, or a .gguf file (of a run: heddle report RUN)");
  const pretrained::Facts f = pretrained::facts_of(pretrained::open(path));
  if (as_json) return cli::print_json(model_json(path, f));
  const auto line = [](const std::string& name, const std::string& value) {
    std::cout << padded(name, 32) << value << "\n";
  };
  line(tr("family"), f.family);
  line(tr("parameters"), report::count_text(static_cast<double>(f.parameters)));
  for (const auto& [key, value] : f.choices) line(key, value);
  for (const auto& [name, type] : f.types)
    line(tr("weights in {}", name),
         tr("{} tensors, {}", type.tensors, report::bytes_text(static_cast<double>(type.bytes))));
  if (f.refusal.empty())
    line(tr("tokenizer"), tr("{}, {} tokens", f.tokenizer, f.tokens));
  else
    line(tr("tokenizer"), tr("refused: {}", f.refusal));
  std::string templates;
  for (const std::string& name : f.templates) templates += (templates.empty() ? "" : ", ") + name;
  line(tr("chat templates"), templates.empty() ? tr("none") : templates);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "what Heddle sees of this machine, or of a model of others");
  command->footer("Example: heddle info SmolLM2-135M-Instruct.gguf");
  auto model = std::make_shared<std::string>();
  command->add_option("MODEL", *model,
                      "a model that others trained: a directory with a config.json, or a .gguf "
                      "file; absent: this machine");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "one JSON document on standard output");
  auto ops = std::make_shared<bool>(false);
  command->add_flag("--ops", *ops, "which op has a routine of its own on which kind of device")
      ->excludes(command->get_option("MODEL"));
  command->callback([model, as_json, ops] {
    if (model->empty()) return print(*as_json, *ops);
    print_model(*model, *as_json);
  });
}

}  // namespace heddle::cli::info_command
