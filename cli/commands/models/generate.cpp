// heddle generate: text by a language model.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "heddle/language_model.h"
#include "io/files/file.h"
#include "io/files/lines.h"
#include "io/json/json.h"
#include "language/language.h"
#include "print_json.h"
#include "sampling_options.h"
#include "with_model.h"

namespace heddle::cli::generate_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::optional<std::string> prompt, prompts;
  SamplingArguments sampling;
  std::int64_t samples = 1, batch = 16, lookup = 0;
  bool slide = false, no_cache = false;
  BeamOptions beam;
  const CLI::App* command = nullptr;
};

// A line's end that a shell put behind standard input is no part of the prompt.
std::string prompt_text(const Arguments& a) {
  if (a.prompt) return *a.prompt;
  if (isatty(STDIN_FILENO) != 0) std::cerr << tr("the prompt, then Ctrl-D:") << "\n";
  std::string text = io::read_standard_input();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

json to_json(const Sample& sample) {
  return {{"tokens", sample.tokens}, {"text", sample.text}, {"finish", to_string(sample.finish)}};
}

json to_json(const Generation& g, const SamplingOptions& sampling) {
  json document = to_json(g.samples.front());
  if (is_drawn(sampling)) document["seed"] = sampling.seed;
  document["prompt_tokens"] = g.prompt_tokens;
  document["seconds"] = g.prompt_seconds + g.decode_seconds;
  document["prompt_seconds"] = g.prompt_seconds;
  if (g.tried_tokens > 0) document["lookup"] = {{"tried", g.tried_tokens}, {"kept", g.kept_tokens}};
  if (g.samples.size() > 1) {
    document["samples"] = json::array();
    for (const Sample& s : g.samples) document["samples"].push_back(to_json(s));
  }
  return document;
}

void print_text(const std::string& prompt, const Generation& g) {
  for (std::size_t i = 0; i < g.samples.size(); ++i) {
    if (g.samples.size() > 1) std::cout << "--- " << i + 1 << "\n";
    std::cout << prompt << g.samples[i].text << "\n";
  }
}

// One text is shown as it comes, several one after the other when all are there.
json run_sampling(const Arguments& a, const LanguageModel& model, const std::string& prompt,
                  const GenerationOptions& options, ToldSeed& seed) {
  const bool live = !a.model.as_json && options.samples == 1;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  TextSink sink;
  if (live)
    sink = [&, begun = false](std::int64_t, std::string_view piece) mutable {
      seed.tell_once();
      if (!begun) std::cout << prompt;
      begun = true;
      std::cout << piece;
      if (terminal) std::cout.flush();
    };
  const Generation g = model.generate(prompt, options, sink);
  if (a.model.as_json) return to_json(g, options.sampling);
  seed.tell_once();
  if (live) std::cout << (g.text().empty() ? prompt : "") << "\n";
  if (!live) print_text(prompt, g);
  return {};
}

json to_json(const Hypothesis& h) {
  return {{"tokens", h.tokens},
          {"text", h.text},
          {"score", h.score},
          {"log_probability", h.log_probability},
          {"finish", h.finished ? "end" : "length"}};
}

json run_beam(const Arguments& a, const LanguageModel& model, const std::string& prompt) {
  const SearchResult found = model.search(prompt, a.beam, a.sampling.options.tokens);
  if (a.model.as_json) {
    json document = to_json(found.best[0]);
    document["prompt_tokens"] = found.prompt_tokens;
    document["seconds"] = found.seconds;
    for (std::size_t i = 0; a.beam.best > 1 && i < found.best.size(); ++i)
      document["best"].push_back(to_json(found.best[i]));
    return document;
  }
  for (const Hypothesis& h : found.best) {
    if (a.beam.best > 1) fmt::print("{:.4f}\t{}\n", h.score, one_line(prompt + h.text));
    if (a.beam.best == 1) fmt::print("{}{}\n", prompt, h.text);
  }
  return {};
}

// A prompt a line; in a file that ends in .jsonl a string of JSON, or an object with a "prompt".
std::vector<std::string> prompts_in(const std::string& path) {
  const io::TextLines lines = io::TextLines::read(path);
  std::vector<std::string> prompts;
  for (const std::string_view line : all_of(lines)) {
    if (!path.ends_with(".jsonl")) {
      prompts.emplace_back(line);
      continue;
    }
    const io::Json value = io::Json::parse(line, path + ":" + std::to_string(prompts.size() + 1));
    prompts.push_back(value.is_object() ? value.at("prompt").string() : value.string());
  }
  if (prompts.empty())
    fail(ErrorCode::invalid_argument, path, "has no prompts", "one a line", "an empty file");
  return prompts;
}

// The error with "FILE:3" as its place where that is "prompt 3", or, of number i, "prompt".
Error with_line_named(const Error& e, const std::string& path, std::size_t i) {
  constexpr std::string_view kPrompt = "prompt";
  std::string place = e.where();
  if (!place.starts_with(kPrompt)) return e;
  place.erase(0, kPrompt.size());
  const std::string line = place.empty() ? std::to_string(i + 1) : place.substr(1);
  return {e.code(), path + ":" + line, e.problem(), e.expected(), e.got()};
}

template <class Body>
auto naming_line(const Arguments& a, std::size_t i, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (!a.prompts) throw;
    throw with_line_named(e, *a.prompts, i);
  }
}

GenerationOptions options_of(const Arguments& a, const LanguageModel& model) {
  if (a.beam.beam > 0) return {};  // nothing is drawn
  GenerationOptions options = sampling_of(*a.command, a.sampling, model);
  options.samples = a.samples;
  options.slide = a.slide;
  options.cache = !a.no_cache;
  options.lookup = a.lookup;
  return options;
}

// Many prompts at once. A text is shown as soon as it and all before it are complete.
json run_together(const Arguments& a, const LanguageModel& model,
                  const std::vector<std::string>& prompts, const GenerationOptions& options) {
  std::vector<std::optional<Generation>> waiting(prompts.size());
  std::size_t shown = 0;
  const auto show = [&](std::size_t number, const Generation& text) {
    waiting[number] = text;
    for (; shown < prompts.size() && waiting[shown]; ++shown) {
      std::cout << "=== " << shown + 1 << "\n";
      print_text(prompts[shown], *waiting[shown]);
      std::cout.flush();
      waiting[shown] = Generation();  // shown, and not needed any more
    }
  };
  const std::vector<Generation> all =
      model.generate_all(prompts, options, a.batch, a.model.as_json ? TextDone() : show);
  json texts = json::array();
  for (const Generation& g : all) texts.push_back(to_json(g, options.sampling));
  return texts;
}

void run(const Arguments& a) {
  const LanguageModel model(open_model(a.model, model::Task::language));
  const std::vector<std::string> prompts =
      a.prompts ? prompts_in(*a.prompts) : std::vector<std::string>{prompt_text(a)};
  json texts = json::array();
  with_options_named([&] {
    const GenerationOptions options = options_of(a, model);
    ToldSeed seed(a.sampling, options.sampling, a.model.as_json || a.beam.beam > 0);
    if (a.prompts && a.beam.beam == 0) {
      seed.tell_once();
      texts = naming_line(a, 0, [&] { return run_together(a, model, prompts, options); });
      return;
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (a.prompts && !a.model.as_json) std::cout << "=== " << i + 1 << "\n" << std::flush;
      texts.push_back(naming_line(a, i, [&] {
        return a.beam.beam > 0 ? run_beam(a, model, prompts[i])
                               : run_sampling(a, model, prompts[i], options, seed);
      }));
    }
  });
  if (a.model.as_json) cli::print_json(a.prompts ? json({{"texts", std::move(texts)}}) : texts[0]);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "text by a language model");
  command->footer(
      "Example: heddle generate runs/llama-style --prompt \"And God said\" --top-p 0.9");
  auto a = std::make_shared<Arguments>();
  a->command = command;
  a->beam.beam = 0;
  declare_model(*command, a->model);
  command->add_option("--prompt", a->prompt, "what the text goes on from; absent: standard input");
  command
      ->add_option("--prompts", a->prompts,
                   "a file of prompts, one a line (.jsonl: JSON), each continued by itself")
      ->excludes("--prompt");
  command
      ->add_option("--batch", a->batch,
                   "so many of --prompts at the same time; changes the speed and no text")
      ->capture_default_str()
      ->needs("--prompts");
  command
      ->add_option(
          "--lookup", a->lookup,
          "try up to N tokens that followed the same words before, and keep those that the "
          "model would have written: changes the speed and no text; 0: none")
      ->capture_default_str();
  declare_sampling(*command, a->sampling);
  command->add_option("--samples", a->samples, "so many texts")->capture_default_str();
  command->add_flag("--slide", a->slide,
                    "when the context is full, go on from its last half; needed for more tokens "
                    "than a model with learned positions has");
  command->add_flag("--no-cache", a->no_cache,
                    "compute all earlier tokens again for each new one: what the cache saves");
  declare_beam(*command, a->beam);
  declare_best(*command, a->beam);
  // Beam search looks for the most probable text: nothing is drawn, and nothing is shown early.
  CLI::Option* beam = command->get_option("--beam");
  beam->default_str(mark("none: draw"));
  for (const std::string& name : drawing_options()) beam->excludes(command->get_option(name));
  for (const char* name :
       {"--samples", "--slide", "--no-cache", "--no-defaults", "--batch", "--lookup"})
    beam->excludes(command->get_option(name));
  for (const char* name : {"--best", "--length-penalty", "--norm"})
    command->get_option(name)->needs(beam);
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::generate_command
