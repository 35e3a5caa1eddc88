// heddle inspect: where a model looks, as a page.
#include "generate/inspect.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "generate/read_images.h"
#include "heddle/error.h"
#include "io/file.h"
#include "print_json.h"
#include "progress.h"
#include "report/inspect/page.h"
#include "report/numbers.h"
#include "with_model.h"

namespace heddle::cli::inspect_command {

namespace {

using generate::Inspection;
using nlohmann::json;

// Weights that --json writes at most: some hundred megabytes of text.
constexpr std::int64_t kMostJsonWeights = std::int64_t{1} << 24;

struct Arguments {
  ModelArguments model;
  std::optional<std::string> prompt, target;
  std::string image, out;
  std::int64_t index = 0;
  report::MapRequest request;
  generate::BeamOptions beam;
  std::string beam_option;  // one that was given
};

generate::InspectInput input_of(const Arguments& a) {
  generate::InspectInput input;
  input.prompt = a.prompt;
  input.target = a.target;
  if (a.image.empty()) return input;
  const auto images = generate::read_images(a.image);
  const auto count = static_cast<std::int64_t>(images.size());
  if (a.index < 0 || a.index >= count)
    fail(ErrorCode::out_of_range, "--index", "image of " + a.image,
         "0 to " + std::to_string(count - 1), std::to_string(a.index));
  input.image = images[static_cast<std::size_t>(a.index)].pixels;
  input.image_name = images[static_cast<std::size_t>(a.index)].name;
  return input;
}

// The rows that were asked for, as the model computed them.
json weights_json(const Inspection& inspection, const report::MapChoice& choice) {
  std::int64_t numbers = 0;
  for (const report::HeadPlace& p : choice.heads) {
    const model::AttentionLayer& l = inspection.maps.layers()[p.layer];
    const report::RowRange rows = choice.rows_of(l);
    numbers += (rows.end - rows.first) * l.keys;
  }
  if (numbers > kMostJsonWeights)
    fail(ErrorCode::out_of_range, "--json", "weights of the chosen rows",
         "at most " + std::to_string(kMostJsonWeights) +
             "; choose fewer with --layer, --head and --rows",
         std::to_string(numbers));
  json all = json::array();
  for (const report::HeadPlace& p : choice.heads) {
    const model::AttentionLayer& l = inspection.maps.layers()[p.layer];
    const report::RowRange rows = choice.rows_of(l);
    const Tensor w = inspection.maps.rows(p.layer, p.head, rows.first, rows.end - rows.first);
    json part = {{"layer", l.name}, {"head", p.head}, {"first_row", rows.first}};
    part["rows"] = json::array();
    for (std::int64_t i = 0; i < w.size(0); ++i) {
      const float* row = w.data<float>() + i * w.size(1);
      part["rows"].push_back(std::vector<float>(row, row + w.size(1)));
    }
    all.push_back(std::move(part));
  }
  return all;
}

json document_of(const Arguments& a, const Inspection& inspection, const report::HeadTable& heads,
                 const report::MapChoice& choice) {
  json d = {{"model", a.model.model}, {"tokens", {{"source", inspection.source}}}};
  if (!inspection.target.empty()) {
    d["tokens"]["target"] = inspection.target;
    d["tokens"]["written"] = inspection.written;
  }
  if (inspection.loss) d["loss"] = *inspection.loss;
  if (!inspection.answer.empty()) d["answer"] = inspection.answer;
  if (inspection.grid) d["patches"] = {inspection.grid->rows, inspection.grid->columns};
  const auto& layers = inspection.maps.layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    json l = {{"name", layers[i].name},
              {"part", model::to_string(layers[i].part)},
              {"queries", layers[i].queries},
              {"keys", layers[i].keys}};
    for (std::size_t h = 0; h < heads[i].size(); ++h) {
      json head = report::stats_json(heads[i][h].stats);
      head["head"] = h;
      l["heads"].push_back(std::move(head));
    }
    d["layers"].push_back(std::move(l));
  }
  if (a.request.given()) d["weights"] = weights_json(inspection, choice);
  if (!a.out.empty()) d["page"] = a.out;
  return d;
}

report::InspectPage page_of(const Arguments& a, const train::LoadedRun& run,
                            const Inspection& inspection) {
  const model::ModelConfig& c = run.model->config();
  report::InspectPage page;
  const std::filesystem::path directory(a.model.model);
  const auto name =
      directory.has_filename() ? directory.filename() : directory.parent_path().filename();
  page.title = "Attention of " + name.string();
  page.subtitle = inspection.grid ? inspection.image_name : *a.prompt;
  if (page.subtitle.size() > 160)
    page.subtitle = fmt::format("{} tokens", inspection.source.size());
  const auto add = [&page](const char* fact, std::string value) {
    page.facts.emplace_back(fact, std::move(value));
  };
  add("kind", std::string(model::to_string(c.kind)));
  if (inspection.grid)
    add("patches", fmt::format("{} × {}", inspection.grid->rows, inspection.grid->columns));
  else
    add(inspection.target.empty() ? "tokens" : "source tokens",
        std::to_string(inspection.source.size()));
  if (!inspection.target.empty()) add("target tokens", std::to_string(inspection.target.size()));
  add("attention layers", std::to_string(inspection.maps.layers().size()));
  add("heads of a layer", std::to_string(inspection.maps.layers().front().heads));
  if (inspection.loss)
    add("loss of this text, nats per token", fmt::format("{:.3f}", *inspection.loss));
  if (a.target) add("target", *a.target);
  if (!inspection.answer.empty())
    add(inspection.target.empty() ? "answer" : "translation", inspection.answer);
  return page;
}

void write_page(const Arguments& a, const report::MadePage& made) {
  io::write_file_atomic(a.out, made.html);
  if (made.exact_heads < made.wanted_heads)
    std::cerr << fmt::format(
        "{} of {} heads are exact in the page, the others pooled: more did not fit. Choose with "
        "--layer, --head and --rows.\n",
        made.exact_heads, made.wanted_heads);
  if (!a.model.as_json)
    std::cout << fmt::format("{}: {}\n", a.out,
                             report::bytes_text(static_cast<double>(made.html.size())));
}

void run(const Arguments& a) {
  if (a.out.empty() && !a.model.as_json)
    fail(ErrorCode::invalid_argument, "inspect", "what to write",
         "--out FILE.html, --json, or both", "neither");
  const train::LoadedRun run = open_model(a.model);
  const model::Task task = run.model->config().task;
  require_translation(a.beam_option, task);
  generate::InspectOptions options;
  options.precision = precision_of(a.model);
  options.beam = a.beam;
  const Inspection inspection = generate::inspect(*run.model, *run.codec, input_of(a), options);
  if (inspection.learned)
    std::cerr << fmt::format("the input is longer than the {} tokens that the model learned from\n",
                             *inspection.learned);
  const report::MapChoice choice = report::choose(inspection.maps, a.request);
  ProgressLine progress;
  const report::HeadTable heads =
      report::summarise_heads(inspection, [&](std::int64_t done, std::int64_t all) {
        progress.show(fmt::format("looked at {} of {} heads", done, all));
      });
  progress.finish();
  if (!a.out.empty())
    write_page(a, report::inspect_page(page_of(a, run, inspection), inspection, heads, choice));
  if (a.model.as_json) cli::print_json(document_of(a, inspection, heads, choice));
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "where a model looks: attention maps of every layer and head");
  command->footer(
      "Examples: heddle inspect runs/llama-style --prompt \"And God said\" --out look.html\n"
      "          heddle inspect runs/transformer-translate --prompt \"A man is reading.\" --layer "
      "cross.2 --out look.html\n"
      "          heddle inspect runs/vit-fashion --image shoe.png --out look.html");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  command->add_option("--prompt", a->prompt, "the text that the model reads");
  CLI::Option* target = command->add_option("--target", a->target,
                                            "of a model that translates: the translation that its "
                                            "decoder reads; absent: the model's own");
  CLI::Option* image = command->add_option(
      "--image", a->image, "for a model of images: a PNG or JPEG file, or an IDX file of many");
  command->add_option("--index", a->index, "which image of an IDX file")
      ->capture_default_str()
      ->needs(image);
  command
      ->add_option("--layer", a->request.layers,
                   "layers to have exactly: 0,3, of two stacks encoder.0, decoder.0, cross.0")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--head", a->request.heads, "heads to have exactly: 0,1")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--rows", a->request.rows,
                      "queries to have exactly: FIRST:END, from 0, END not included");
  command->add_option("--out", a->out, "write one HTML page that needs nothing else");
  declare_beam(*command, a->beam);
  command->callback([a, command] {
    a->beam_option = given_beam_option(*command);
    run(*a);
  });
  // A translation that is given need not be searched for.
  for (const char* name : kBeamOptions) target->excludes(command->get_option(name));
}

}  // namespace heddle::cli::inspect_command
