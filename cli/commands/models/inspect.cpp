// heddle inspect: where a model looks, as a page.
#include "generate/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "heddle/images.h"
#include "io/files/file.h"
#include "language/language.h"
#include "model/model.h"
#include "print_json.h"
#include "progress.h"
#include "report/inspect/page.h"
#include "report/page/numbers.h"
#include "with_model.h"

namespace heddle::cli::inspect_command {

namespace {

using nlohmann::json;

// Weights that --json writes at most: some hundred megabytes of text.
constexpr std::int64_t kMostJsonWeights = std::int64_t{1} << 24;

// An option given twice is for two sides: the first of each for one, the second for the other.
struct Arguments {
  ModelArguments model;
  std::string against;  // the second side's model; empty: the same
  std::vector<std::string> prompts, targets, images;
  std::vector<std::int64_t> indices;
  std::string out;
  report::MapRequest request;
  BeamOptions beam;
  std::string beam_option;  // one that was given
};

// One model on one input, with what is shown of it.
struct Side {
  ModelArguments model;
  InspectInput input;
  TrainedModel trained;
  Inspection inspection;
  report::MapChoice choice;
  report::HeadTable heads = {};
};

// Sides that the arguments ask for. What is given once is for all of them.
std::size_t count_sides(const Arguments& a) {
  std::size_t sides = a.against.empty() ? 1 : 2;
  const auto count = [&sides](const char* option, std::size_t given) {
    if (given > 2)
      fail(ErrorCode::invalid_argument, option, "how often it is given",
           "once, or twice to see two beside each other", std::to_string(given) + " times");
    sides = std::max(sides, given);
  };
  count("--prompt", a.prompts.size());
  count("--target", a.targets.size());
  count("--image", a.images.size());
  count("--index", a.indices.size());
  return sides;
}

template <class T>
std::optional<T> of_side(const std::vector<T>& given, std::size_t side) {
  if (given.empty()) return std::nullopt;
  return given[std::min(side, given.size() - 1)];
}

InspectInput input_of(const Arguments& a, std::size_t side) {
  InspectInput input;
  input.prompt = of_side(a.prompts, side);
  input.target = of_side(a.targets, side);
  const auto file = of_side(a.images, side);
  if (!file) return input;
  const std::int64_t index = of_side(a.indices, side).value_or(0);
  const auto images = read_images(*file);
  const auto count = static_cast<std::int64_t>(images.size());
  if (index < 0 || index >= count)
    fail(ErrorCode::out_of_range, "--index", "image of " + *file,
         "0 to " + std::to_string(count - 1), std::to_string(index));
  input.image = images[static_cast<std::size_t>(index)].pixels;
  input.image_name = images[static_cast<std::size_t>(index)].name;
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

json document_of(const Arguments& a, const Side& side) {
  const Inspection& inspection = side.inspection;
  json d = {{"model", side.model.model}, {"tokens", {{"source", inspection.source}}}};
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
    for (std::size_t h = 0; h < side.heads[i].size(); ++h) {
      json head = report::stats_json(side.heads[i][h].stats);
      head["head"] = h;
      l["heads"].push_back(std::move(head));
    }
    d["layers"].push_back(std::move(l));
  }
  if (a.request.given()) d["weights"] = weights_json(inspection, side.choice);
  return d;
}

// One side as it always was; two in a list.
json document_of(const Arguments& a, const std::vector<Side>& sides) {
  json d;
  if (sides.size() == 1) {
    d = document_of(a, sides.front());
  } else {
    for (const Side& side : sides) d["sides"].push_back(document_of(a, side));
  }
  if (!a.out.empty()) d["page"] = a.out;
  return d;
}

std::string model_name(const Side& side) {
  const std::filesystem::path directory(side.model.model);
  return (directory.has_filename() ? directory.filename() : directory.parent_path().filename())
      .string();
}

std::string input_name(const Side& side) {
  const Inspection& inspection = side.inspection;
  std::string name = inspection.grid ? inspection.image_name : *side.input.prompt;
  if (side.input.target) name += " → " + *side.input.target;
  return name.size() > 160 ? tr("{} tokens", inspection.source.size()) : name;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

Facts facts_of(const Side& side) {
  const Inspection& inspection = side.inspection;
  Facts facts;
  facts.emplace_back(tr("kind"),
                     std::string(model::to_string(side.trained.network().config().kind)));
  if (inspection.grid)
    facts.emplace_back(tr("patches"),
                       fmt::format("{} × {}", inspection.grid->rows, inspection.grid->columns));
  else
    facts.emplace_back(inspection.target.empty() ? tr("tokens") : tr("source tokens"),
                       std::to_string(inspection.source.size()));
  if (!inspection.target.empty())
    facts.emplace_back(tr("target tokens"), std::to_string(inspection.target.size()));
  facts.emplace_back(tr("attention layers"), std::to_string(inspection.maps.layers().size()));
  facts.emplace_back(tr("heads of a layer"),
                     std::to_string(inspection.maps.layers().front().heads));
  if (inspection.loss)
    facts.emplace_back(tr("loss of this text, nats per token"),
                       fmt::format("{:.3f}", *inspection.loss));
  if (!inspection.answer.empty())
    facts.emplace_back(inspection.target.empty() ? tr("answer") : tr("translation"),
                       inspection.answer);
  return facts;
}

// Facts that both sides have in common are told once, the rest as "A … · B …".
Facts facts_of(const std::vector<Side>& sides) {
  Facts first = facts_of(sides.front());
  if (sides.size() == 1) return first;
  Facts second = facts_of(sides.back()), all;
  for (const auto& [name, value] : first) {
    const auto other = std::ranges::find(second, name, &Facts::value_type::first);
    if (other == second.end()) {
      all.emplace_back("A: " + name, value);
      continue;
    }
    const bool same = other->second == value;
    all.emplace_back(name, same ? value : fmt::format("A {} · B {}", value, other->second));
    second.erase(other);
  }
  for (const auto& [name, value] : second) all.emplace_back("B: " + name, value);
  return all;
}

report::InspectPage page_of(const std::vector<Side>& sides) {
  report::InspectPage page;
  const std::string first = model_name(sides.front()), second = model_name(sides.back());
  page.title = first == second ? tr("Attention of {}", first)
                               : tr("Attention of {} and of {}", first, second);
  const std::string input = input_name(sides.front()), other = input_name(sides.back());
  page.subtitle = input == other ? input : "A: " + input + "   B: " + other;
  page.facts = facts_of(sides);
  return page;
}

// The difference of the two sides: the model, the input, or both.
std::string side_name(const std::vector<Side>& sides, std::size_t i) {
  const Side& side = sides[i];
  const bool models = sides.front().model.model != sides.back().model.model;
  const bool inputs = input_name(sides.front()) != input_name(sides.back());
  std::string name = i == 0 ? "A" : "B";
  if (models || !inputs) name += " · " + model_name(side);
  if (inputs) name += " · " + input_name(side);
  return name;
}

report::MadePage made_page(const Arguments& a, const std::vector<Side>& sides) {
  std::vector<report::InspectSide> shown;
  shown.reserve(sides.size());
  const bool asked = !a.request.layers.empty() || !a.request.heads.empty();
  for (std::size_t i = 0; i < sides.size(); ++i)
    shown.push_back(
        {side_name(sides, i), sides[i].inspection, sides[i].heads, sides[i].choice, asked});
  return report::inspect_page(page_of(sides), shown);
}

void write_page(const Arguments& a, const report::MadePage& made) {
  io::write_file_atomic(a.out, made.html);
  if (made.exact_heads < made.wanted_heads)
    std::cerr << tr("{} of {} heads are exact in the page, the others pooled: more did not fit. "
                    "Choose with --layer, --head and --rows.",
                    made.exact_heads, made.wanted_heads)
              << "\n";
  if (!a.model.as_json)
    std::cout << fmt::format("{}: {}\n", a.out,
                             report::bytes_text(static_cast<double>(made.html.size())));
}

Side open_side(const Arguments& a, std::size_t number) {
  ModelArguments model = a.model;
  if (number == 1 && !a.against.empty()) model.model = a.against;
  TrainedModel trained = open_model(model);
  require_translation(a.beam_option, trained.task());
  InspectInput input = input_of(a, number);
  Inspection inspection = with_options_named([&] { return inspect(trained, input, a.beam); });
  if (inspection.learned)
    std::cerr << tr("the input is longer than the {} tokens that the model learned from",
                    *inspection.learned)
              << "\n";
  report::MapChoice choice = report::choose(inspection.maps, a.request);
  return {std::move(model),      std::move(input),  std::move(trained),
          std::move(inspection), std::move(choice), {}};
}

void run(Arguments a) {
  if (a.out.empty() && !a.model.as_json)
    a.out = (std::filesystem::path(a.model.model) / "inspect.html").string();
  const std::size_t count = count_sides(a);
  std::vector<Side> sides;
  sides.reserve(count);
  for (std::size_t i = 0; i < count; ++i) sides.push_back(open_side(a, i));
  ProgressLine progress;
  for (Side& side : sides)
    side.heads = report::summarise_heads(side.inspection, [&](std::int64_t done, std::int64_t all) {
      progress.show(tr("looked at {} of {} heads", done, all));
    });
  progress.finish();
  if (!a.out.empty()) write_page(a, made_page(a, sides));
  if (a.model.as_json) cli::print_json(document_of(a, sides));
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "where a model looks: attention maps of every layer and head");
  command->footer(
      "Examples: heddle inspect runs/llama-style --prompt \"And God said\"\n"
      "          heddle inspect runs/transformer-translate --prompt \"A man is reading.\"\n"
      "          heddle inspect runs/vit-fashion --image shoe.png --out look.html\n"
      "          heddle inspect runs/a --against runs/b --prompt \"And God said\"");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  command
      ->add_option("--against", a->against,
                   "a second model, shown beside the first, with the difference where the tokens "
                   "are the same")
      ->type_name("MODEL");
  command
      ->add_option("--prompt", a->prompts,
                   "the text that the model reads; given twice: two texts beside each other")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  CLI::Option* target =
      command
          ->add_option("--target", a->targets,
                       "of a model that translates: the translation that its decoder reads; "
                       "absent: the model's own")
          ->type_name("TEXT")
          ->allow_extra_args(false);
  CLI::Option* image = command
                           ->add_option("--image", a->images,
                                        "for a model of images: a PNG or JPEG file, or an IDX file "
                                        "of many; may be given twice")
                           ->type_name("FILE")
                           ->allow_extra_args(false);
  command->add_option("--index", a->indices, "which image of an IDX file (0); may be given twice")
      ->type_name("N")
      ->allow_extra_args(false)
      ->needs(image);
  command
      ->add_option("--layer", a->request.layers,
                   "layers to have exactly: 0,3, of two stacks encoder.0, decoder.0, cross.0")
      ->type_name("LAYERS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--head", a->request.heads, "heads to have exactly: 0,1")
      ->type_name("HEADS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--rows", a->request.rows,
                   "queries to have exactly: FIRST:END, from 0, END not included")
      ->type_name("FIRST:END");
  command
      ->add_option("--out", a->out,
                   "the page, one file that needs nothing else (default: inspect.html in the "
                   "directory of the model; with --json: none)")
      ->type_name("FILE");
  declare_beam(*command, a->beam);
  command->callback([a, command] {
    a->beam_option = given_beam_option(*command);
    run(*a);
  });
  // A translation that is given need not be searched for.
  for (const char* name : kBeamOptions) target->excludes(command->get_option(name));
}

}  // namespace heddle::cli::inspect_command
