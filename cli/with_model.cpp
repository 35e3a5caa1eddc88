#include "with_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "recipe/shipped/shipped.h"
#include "run/run_directory.h"

namespace heddle::cli {

namespace {

std::string_view command_for(model::Task task) {
  switch (task) {
    case model::Task::language: return "heddle generate";
    case model::Task::tag: return "heddle tag";
    case model::Task::classify: return "heddle classify";
    case model::Task::translate: return "heddle translate";
    case model::Task::masked: return "heddle eval or heddle logits";
    case model::Task::embed: return "heddle embed";
  }
  return "another command";
}

// A recipe is what a model is made of: the name of both is easily taken for the other's.
void refuse_recipe(const std::string& given) {
  std::error_code error;
  const std::filesystem::path path(given);
  const bool file = path.extension() == ".toml" && std::filesystem::is_regular_file(path, error);
  if (!file && (std::filesystem::exists(path, error) || !recipe::find_shipped(given))) return;
  const std::string run = (std::filesystem::path("runs") / path.stem()).string();
  fail(ErrorCode::invalid_argument, given, "is a recipe, not a model that was trained",
       run::is_run(run) ? "the directory of a run, such as " + run
                        : "the directory of a run, which heddle train makes of it: " + run);
}

// A slip in the name of a run: the nearest of its neighbours.
void refuse_missing(const std::string& given) {
  std::error_code error;
  const std::filesystem::path path(given);
  if (given.empty() || std::filesystem::exists(path, error)) return;
  const std::filesystem::path folder = path.parent_path();
  std::vector<std::string> runs;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, error))
    if (run::is_run(entry.path().string())) runs.push_back(entry.path().filename().string());
  const std::string near = io::nearest_name(path.filename().string(), runs);
  if (!near.empty())
    fail(ErrorCode::io, given, "is not there (did you mean " + (folder / near).string() + "?)",
         "the directory of a run");
}

}  // namespace

void declare_model(CLI::App& command, ModelArguments& arguments, bool exact) {
  command
      .add_option("MODEL", arguments.model,
                  "the directory of a run, or a model that others trained: a directory with a "
                  "config.json, or a .gguf file")
      ->required();
  const std::vector<std::string> known = exact ? std::vector<std::string>{"fp32", "bf16", "fp64"}
                                               : std::vector<std::string>{"fp32", "bf16"};
  command
      .add_option("--precision", arguments.precision,
                  exact ? "of the computation: fp32, bf16 (faster) or fp64 (for proofs)"
                        : "of the computation: fp32 or bf16 (faster)")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
  command
      .add_option("--weights", arguments.weights,
                  "what weights are held in: fp32 or bf16 (half the memory); without it bf16 for "
                  "models of others whose files or computation are no finer")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command.add_option("--device", arguments.device, "what computes: cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
  command.add_flag("--json", arguments.as_json, "one JSON document on standard output");
}

DType precision_of(const ModelArguments& arguments) {
  if (arguments.precision == "fp64") return DType::f64;
  return arguments.precision == "bf16" ? DType::bf16 : DType::f32;
}

TrainedModel open_model(const ModelArguments& arguments) {
  refuse_recipe(arguments.model);
  refuse_missing(arguments.model);
  std::optional<DType> weights;
  if (!arguments.weights.empty()) weights = arguments.weights == "bf16" ? DType::bf16 : DType::f32;
  return TrainedModel(arguments.model, precision_of(arguments), parse_device(arguments.device),
                      weights);
}

TrainedModel open_model(const ModelArguments& arguments, model::Task task) {
  TrainedModel model = open_model(arguments);
  if (model.task() != task)
    fail(ErrorCode::invalid_argument, arguments.model,
         "is a model for " + std::string(to_string(model.task())) + ": use " +
             std::string(command_for(model.task())),
         "a model for " + std::string(to_string(task)), to_string(model.task()));
  return model;
}

void declare_beam(CLI::App& command, BeamOptions& options) {
  command.add_option("--beam", options.beam, "hypotheses that are kept side by side; 1 is greedy")
      ->check(CLI::Range(std::int64_t{1}, kMostBeams))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--beam-kind",
          [&options](const std::string& name) {
            options.kind = name == "full" ? BeamKind::full : BeamKind::narrowing;
          },
          "whether finished hypotheses take places of the beam (narrowing), or as many go on "
          "(full)")
      ->check(CLI::IsMember({"narrowing", "full"}))
      ->default_str("narrowing");
  command
      .add_option("--length-penalty", options.length_penalty,
                  "0 favours short texts, more favours longer ones; 1 compares means")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--norm",
          [&options](const std::string& name) {
            options.norm = name == "gnmt" ? LengthNorm::gnmt : LengthNorm::mean;
          },
          "what log-probabilities are divided by: length^penalty (mean), or "
          "((5 + length) / 6)^penalty (gnmt)")
      ->check(CLI::IsMember({"mean", "gnmt"}))
      ->default_str("mean");
}

namespace {

// The options that are fields of the library's inputs, and what these call them.
struct FieldOption {
  std::string_view field, wanted, usage;
};

constexpr FieldOption kFieldOptions[] = {{"prompt", "a prompt", "--prompt TEXT"},
                                         {"target", "a target", "--target TEXT"},
                                         {"image", "an image", "--image FILE"}};

}  // namespace

Error with_option_named(const Error& e) {
  std::string expected = e.expected();
  for (const FieldOption& o : kFieldOptions)
    if (expected == o.wanted) expected = o.usage;
  for (const FieldOption& o : kFieldOptions)
    if (e.where() == o.field)
      return {e.code(), "--" + std::string(o.field), e.problem(), expected, e.got()};
  constexpr std::string_view kOption = "option ";
  if (!e.problem().starts_with(kOption)) return e;
  std::string name = e.problem().substr(kOption.size());
  std::replace(name.begin(), name.end(), '_', '-');
  return {e.code(), "--" + name, "cannot be so", e.expected(), e.got()};
}

std::string given_beam_option(const CLI::App& command) {
  for (const char* name : kBeamOptions)
    if (command.count(name) > 0) return name;
  return {};
}

void require_translation(const std::string& option, model::Task task) {
  if (!option.empty() && task != model::Task::translate)
    fail(ErrorCode::invalid_argument, option, "model", "one that translates",
         model::to_string(task));
}

void declare_best(CLI::App& command, BeamOptions& options) {
  command
      .add_option("--best", options.best,
                  "so many of the beam's texts, the best first, as score<TAB>text")
      ->check(CLI::Range(std::int64_t{1}, kMostBeams))
      ->capture_default_str();
}

io::TextLines read_standard_lines() { return {io::read_standard_input(), "standard input"}; }

std::vector<std::string_view> all_of(const io::TextLines& lines) {
  std::vector<std::string_view> all;
  all.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) all.push_back(lines[i]);
  return all;
}

std::vector<std::int32_t> parse_tokens(const std::string& list, std::string_view option) {
  std::vector<std::int32_t> tokens;
  const char* at = list.data();
  const char* end = list.data() + list.size();
  while (true) {
    std::int32_t token = 0;
    const auto [next, error] = std::from_chars(at, end, token);
    if (error != std::errc() || token < 0 || (next != end && *next != ','))
      fail(ErrorCode::invalid_argument, option, "list of tokens", "ids such as 1,2,3", list);
    tokens.push_back(token);
    if (next == end) return tokens;
    at = next + 1;
  }
}

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace heddle::cli
