// heddle generate: text by a language model.
#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "command.h"
#include "heddle/language_model.h"
#include "io/files/file.h"
#include "language/language.h"
#include "print_json.h"
#include "tell.h"
#include "with_model.h"

namespace heddle::cli::generate_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::optional<std::string> prompt;
  GenerationOptions options;
  std::optional<std::uint64_t> seed;  // absent: a new one
  BeamOptions beam;
  bool no_cache = false;
};

// A line's end that a shell put behind standard input is no part of the prompt.
std::string prompt_text(const Arguments& a) {
  if (a.prompt) return *a.prompt;
  if (isatty(STDIN_FILENO) != 0) std::cerr << tr("the prompt, then Ctrl-D:") << "\n";
  std::string text = io::read_standard_input();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_drawn(const SamplingOptions& sampling) { return sampling.temperature != 0; }

// Whoever gives no seed wants another text each time, and may want this one again: the seed is
// told, on standard error, so that the text stays alone where it goes.
class Seed {
 public:
  explicit Seed(const Arguments& a)
      : value_(a.seed.value_or(std::random_device{}())),
        tell_(!a.seed && is_drawn(a.options.sampling) && !a.model.as_json) {}

  std::uint64_t value() const { return value_; }
  void tell_once() {
    if (tell_) tell("{}\n", tr("seed {}", value_));
    tell_ = false;
  }

 private:
  std::uint64_t value_;
  bool tell_;
};

json to_json(const Sample& sample) {
  return {{"tokens", sample.tokens}, {"text", sample.text}, {"finish", to_string(sample.finish)}};
}

void print_json(const Generation& g, const SamplingOptions& sampling) {
  json document = to_json(g.samples.front());
  if (is_drawn(sampling)) document["seed"] = sampling.seed;
  document["prompt_tokens"] = g.prompt_tokens;
  document["seconds"] = g.prompt_seconds + g.decode_seconds;
  document["prompt_seconds"] = g.prompt_seconds;
  if (g.samples.size() > 1) {
    document["samples"] = json::array();
    for (const Sample& s : g.samples) document["samples"].push_back(to_json(s));
  }
  cli::print_json(document);
}

// One text is shown as it comes, several one after the other when all are there.
void run_sampling(const Arguments& a, const LanguageModel& model, const std::string& prompt) {
  GenerationOptions options = a.options;
  options.cache = !a.no_cache;
  Seed seed(a);
  options.sampling.seed = seed.value();
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
  if (a.model.as_json) return print_json(g, options.sampling);
  seed.tell_once();
  if (live) {
    std::cout << (g.text().empty() ? prompt : "") << "\n";
    return;
  }
  for (std::size_t i = 0; i < g.samples.size(); ++i)
    std::cout << "--- " << i + 1 << "\n" << prompt << g.samples[i].text << "\n";
}

json to_json(const Hypothesis& h) {
  return {{"tokens", h.tokens},
          {"text", h.text},
          {"score", h.score},
          {"log_probability", h.log_probability},
          {"finish", h.finished ? "end" : "length"}};
}

void run_beam(const Arguments& a, const LanguageModel& model, const std::string& prompt) {
  const SearchResult found = model.search(prompt, a.beam, a.options.tokens);
  if (a.model.as_json) {
    json document = to_json(found.best[0]);
    document["prompt_tokens"] = found.prompt_tokens;
    document["seconds"] = found.seconds;
    for (std::size_t i = 0; a.beam.best > 1 && i < found.best.size(); ++i)
      document["best"].push_back(to_json(found.best[i]));
    cli::print_json(document);
    return;
  }
  for (const Hypothesis& h : found.best) {
    if (a.beam.best > 1) fmt::print("{:.4f}\t{}\n", h.score, one_line(prompt + h.text));
    if (a.beam.best == 1) fmt::print("{}{}\n", prompt, h.text);
  }
}

void run(const Arguments& a) {
  const LanguageModel model(open_model(a.model, model::Task::language));
  const std::string prompt = prompt_text(a);
  with_options_named([&] {
    if (a.beam.beam > 0)
      run_beam(a, model, prompt);
    else
      run_sampling(a, model, prompt);
  });
}

// The parser of the command line takes -1 and 1e30 for the largest number there is.
std::string whole_seed(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && next == end) return {};
  return "expected a whole number from 0 to " +
         std::to_string(std::numeric_limits<std::uint64_t>::max()) + "; got " + text;
}

void declare_sampling(CLI::App& command, Arguments& a) {
  GenerationOptions& o = a.options;
  SamplingOptions& s = o.sampling;
  command.add_option("--temperature", s.temperature, "below 1 surer, above 1 wilder; 0: greedy")
      ->capture_default_str();
  command.add_option("--top-k", s.top_k, "draw from the k most probable tokens; 0: from all")
      ->capture_default_str();
  command.add_option("--top-p", s.top_p, "draw from the most probable tokens that make up p")
      ->capture_default_str();
  command
      .add_option("--min-p", s.min_p, "draw from tokens at least p times as probable as the best")
      ->capture_default_str();
  command
      .add_option("--repetition-penalty", s.repetition_penalty,
                  "above 1: tokens that were there become less probable")
      ->capture_default_str();
  command
      .add_option("--seed", a.seed,
                  "the same seed gives the same text; absent: a new one each time, which is told")
      ->check(whole_seed, "0 to 2^64 - 1");
  command.add_option("--samples", o.samples, "so many texts")->capture_default_str();
  command.add_option("--stop", o.stop, "end before this text; may be given several times")
      ->allow_extra_args(false);
  command.add_flag("--slide", o.slide,
                   "when the context is full, go on from its last half; needed for more tokens "
                   "than a model with learned positions has");
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "text by a language model");
  command->footer(
      "Example: heddle generate runs/llama-style --prompt \"And God said\" --top-p 0.9");
  auto a = std::make_shared<Arguments>();
  a->beam.beam = 0;
  declare_model(*command, a->model);
  command->add_option("--prompt", a->prompt, "what the text goes on from; absent: standard input");
  command->add_option("--tokens", a->options.tokens,
                      "at most so many more; absent: 256, or what fits the context");
  declare_sampling(*command, *a);
  command->add_flag("--no-cache", a->no_cache,
                    "compute all earlier tokens again for each new one: what the cache saves");
  declare_beam(*command, a->beam);
  declare_best(*command, a->beam);
  // Beam search looks for the most probable text: nothing is drawn, and nothing is shown early.
  CLI::Option* beam = command->get_option("--beam");
  beam->default_str(mark("none: draw"));
  for (const char* name : {"--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty",
                           "--seed", "--samples", "--stop", "--slide", "--no-cache"})
    beam->excludes(command->get_option(name));
  for (const char* name : {"--best", "--length-penalty", "--norm"})
    command->get_option(name)->needs(beam);
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::generate_command
