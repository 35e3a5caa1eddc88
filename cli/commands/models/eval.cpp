// heddle eval: how good a model is on data that it was not trained on.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "command.h"
#include "data/dataset.h"
#include "data/loading.h"
#include "generate/perplexity.h"
#include "generate/tasks/translate.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "progress.h"
#include "reading_line.h"
#include "run/load_run.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"
#include "run/unit.h"
#include "train/evaluate/evaluate.h"
#include "with_model.h"

namespace heddle::cli::eval_command {

namespace {

using nlohmann::json;

constexpr std::size_t kMostText = std::size_t{1} << 30;

struct Arguments {
  ModelArguments model;
  std::string data;
  std::vector<std::string> set;
  data::Split split = data::Split::validation;
  std::int64_t batch = 16;
  BeamOptions beam;
  bool no_bleu = false;
  std::string translation_option;  // one that was given
  std::string text;                // a file, in windows
  generate::PerplexityOptions windows;
};

// The file takes the place of the split's own.
data::Files files_of(const std::string& file, const model::ModelConfig& config, bool chat) {
  data::Files files;
  switch (config.task) {
    case model::Task::language:
    case model::Task::masked:
      if (chat)
        files.chat = file;
      else
        files.text = {file};
      break;
    case model::Task::translate: files.pairs = file; break;
    case model::Task::tag: files.tags = file; break;
    case model::Task::classify:
      (config.kind == model::Kind::vit ? files.image_folder : files.labelled) = file;
      break;
    case model::Task::embed: break;  // refused before: there is nothing to judge
  }
  return files;
}

// Keys of [data] that were decided with the model: it has its tokens and labels from them.
constexpr std::array<std::string_view, 6> kDecided = {"data.tokenizer",   "data.target_tokenizer",
                                                      "data.source_end",  "data.min_count",
                                                      "data.word_shapes", "data.label_names"};

// The recipe's data with what --set says. Other tables made the model what it is.
data::DataConfig data_config(const Arguments& a, const run::LoadedRun& run) {
  for (const std::string& set : a.set) {
    const std::string key = set.substr(0, set.find('='));
    if (!set.starts_with("data.") || std::ranges::find(kDecided, key) != kDecided.end())
      fail(ErrorCode::invalid_argument, "--set", "key",
           "one of [data] that says which data is read, such as data.test: the model has its own "
           "tokens and labels",
           set);
  }
  if (a.set.empty()) return run.recipe.data;
  return run::load_recipe(run::RunPaths{run.directory}.recipe(), a.set).data;
}

// Whether a file has conversations: as those of the run, or by its name for a model that can read
// them.
bool is_chat(const std::string& file, const run::LoadedRun& run) {
  if (data::has_chat(run.recipe.data)) return true;
  return !run.templates.empty() && (file.ends_with(".jsonl") || file.ends_with(".jsonl.gz"));
}

std::unique_ptr<data::Dataset> open_data(const Arguments& a, const run::LoadedRun& run) {
  data::DataConfig config = data_config(a, run);
  const model::ModelConfig& model = run.model->config();
  const bool test = a.split == data::Split::test;
  if (!a.data.empty()) {
    if (std::error_code error; !std::filesystem::exists(a.data, error))
      fail(ErrorCode::invalid_argument, "--data", "there is no such file",
           "a file like those of the recipe's [data], or a folder of images", a.data);
    const bool chat = is_chat(a.data, run);
    if (chat && !data::has_chat(config)) config = {};
    (test ? config.test : config.validation) = files_of(a.data, model, chat);
    config.validation_share = {};
    config.token_folder.clear();  // read once
  }
  ReadingLine line;
  data::OpenOptions options;
  options.codec = run.codec;
  options.training = false;
  options.validation = !test;
  options.test = test;
  options.reading = line.sink();
  return recipe::with_places(
      run.recipe, [&] { return data::open_dataset(config, model.kind, model.task, options); });
}

void print(const train::Evaluation& e, std::string_view unit,
           const std::optional<text::Bleu>& bleu) {
  const auto line = [](const std::string& name, const std::string& value) {
    fmt::print("{}{}\n", padded(name, 12), value);
  };
  line(tr("loss"), fmt::format("{:.4f}", e.loss));
  line(tr("perplexity"), fmt::format("{:.4f}", e.perplexity));
  line(tr(unit), data::grouped(e.tokens));
  if (e.accuracy) line(tr("accuracy"), fmt::format("{:.4f}", *e.accuracy));
  if (bleu)
    line("bleu", tr("{:.2f}  ({:.1f}/{:.1f}/{:.1f}/{:.1f}, brevity {:.3f}, {} words)", bleu->score,
                    bleu->precisions[0], bleu->precisions[1], bleu->precisions[2],
                    bleu->precisions[3], bleu->brevity_penalty, bleu->words));
}

void print_json(const train::Evaluation& e, const std::optional<text::Bleu>& bleu) {
  json document = {{"loss", e.loss}, {"perplexity", e.perplexity}, {"tokens", e.tokens}};
  if (e.accuracy) document["accuracy"] = *e.accuracy;
  if (bleu) {
    document["bleu"] = bleu->score;
    document["bleu_precisions"] = bleu->precisions;
    document["brevity_penalty"] = bleu->brevity_penalty;
  }
  cli::print_json(document);
}

void print(const generate::Perplexity& p, bool as_json) {
  if (as_json)
    return cli::print_json(json{{"loss", p.loss},
                                {"perplexity", p.perplexity},
                                {"tokens", p.tokens},
                                {"counted", p.counted},
                                {"windows", p.windows}});
  const auto line = [](const std::string& name, const std::string& value) {
    fmt::print("{}{}\n", padded(name, 12), value);
  };
  line(tr("loss"), fmt::format("{:.4f}", p.loss));
  line(tr("perplexity"), fmt::format("{:.4f}", p.perplexity));
  line(tr("tokens"), tr("{} counted of {}, in {} windows", data::grouped(p.counted),
                        data::grouped(p.tokens), data::grouped(p.windows)));
}

// A text of any length, in windows, whatever data the model was trained on.
void run_text(const Arguments& a, const TrainedModel& model) {
  const run::LoadedRun& run = run::loaded(model);
  run::require_task(model, model::Task::language);
  const std::string text = io::read_file(a.text, kMostText);
  ProgressLine progress;
  generate::PerplexityOptions options = a.windows;
  options.precision = model.precision();
  options.progress = [&](std::int64_t done, std::int64_t all) {
    progress.show(tr("token {} of {}", done, all));
  };
  const auto result = generate::perplexity(*run.model, run.codec->encode_source(text), options);
  progress.finish();
  print(result, a.model.as_json);
}

void run(const Arguments& a) {
  const TrainedModel model = open_model(a.model);
  if (!a.text.empty()) return run_text(a, model);
  const run::LoadedRun& run = run::loaded(model);
  if (run.recipe.toml.empty() && (a.data.empty() || !is_chat(a.data, run)))
    fail(
        ErrorCode::invalid_argument, "eval", "a model that others trained has no data of its own",
        "--text FILE, or --data FILE.jsonl with conversations for a model that has a chat template",
        a.model.model);
  const model::Task task = run.model->config().task;
  require_translation(a.translation_option, task);
  const auto data = open_data(a, run);
  ProgressLine progress;
  train::EvaluateOptions options;
  options.split = a.split;
  options.batch = a.batch;
  options.precision = model.precision();
  options.progress = [&](std::int64_t done, std::int64_t all) {
    progress.show(tr("batch {} of {}", done, all));
  };
  const train::Evaluation result = train::evaluate(*run.model, *data, options);
  std::optional<text::Bleu> bleu;
  if (task == model::Task::translate && !a.no_bleu) {
    TranslationOptions translate;
    translate.beam = a.beam;
    translate.progress = [&](std::size_t done, std::size_t all) {
      progress.show(tr("translated {} of {} lines", done, all));
    };
    bleu = generate::translation_bleu(*run.model, *data, a.split, translate, options.precision);
  }
  progress.finish();
  if (a.model.as_json)
    print_json(result, bleu);
  else
    print(result, run::unit_judged(run.model->config()), bleu);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "eval", "loss and perplexity on held-out data; accuracy and BLEU where they apply");
  command->footer("Example: heddle eval runs/transformer-translate --split test --beam 5 --json");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  command
      ->add_option_function<std::string>(
          "--split",
          [a](const std::string& name) {
            a->split = name == "test" ? data::Split::test : data::Split::validation;
          },
          "validation or test")
      ->check(CLI::IsMember({"validation", "test"}))
      ->default_str("validation");
  command
      ->add_option("--data", a->data,
                   "a file in place of the recipe's: a text, conversations (.jsonl), "
                   "source<TAB>target pairs, "
                   "word<TAB>tag lines, label<TAB>text lines, or a folder of images per class")
      ->type_name("FILE");
  command
      ->add_option("--set", a->set,
                   "a key of the recipe's [data], such as data.test=FILE; may be given several "
                   "times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--batch", a->batch,
                   "sequences at a time; does not change the result, but for experts with a "
                   "capacity, for which they compete")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  declare_beam(*command, a->beam);
  CLI::Option* no_bleu =
      command->add_flag("--no-bleu", a->no_bleu, "loss only, without translating");
  for (const char* name : kBeamOptions) no_bleu->excludes(command->get_option(name));
  CLI::Option* text = command->add_option(
      "--text", a->text, "the perplexity of a text file of any length, read in windows");
  for (const char* other : {"--data", "--set", "--split"})
    text->excludes(command->get_option(other));
  command->add_option("--window", a->windows.window, "tokens read at once; absent: the context")
      ->check(CLI::Range(2, 1 << 24))
      ->needs(text);
  command
      ->add_option("--stride", a->windows.stride,
                   "tokens from one window to the next; absent: half a window")
      ->check(CLI::Range(1, 1 << 24))
      ->needs(text);
  command
      ->add_option("--skip", a->windows.skip,
                   "tokens at the beginning of every window that are read and not counted; absent: "
                   "those that were counted before")
      ->check(CLI::Range(1, 1 << 24))
      ->needs(text);
  command->callback([a, command] {
    a->translation_option = a->no_bleu ? "--no-bleu" : given_beam_option(*command);
    run(*a);
  });
}

}  // namespace heddle::cli::eval_command
