// heddle classify: labels of images or of lines of text.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "heddle/classifier.h"
#include "heddle/error.h"
#include "language/language.h"
#include "print_json.h"
#include "with_model.h"

namespace heddle::cli::classify_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::vector<std::string> files;
  PredictionOptions options;
};

struct Labelled {
  std::vector<std::string> names;  // of images; none for lines
  std::vector<Prediction> predictions;
};

Labelled label_images(const Arguments& a, const Classifier& model) {
  if (a.files.empty())
    fail(ErrorCode::invalid_argument, "classify", "images",
         "files (PNG, JPEG or IDX) as arguments: the model classifies images", "none");
  std::vector<NamedImage> images;
  for (const std::string& file : a.files)
    for (NamedImage& image : read_images(file)) images.push_back(std::move(image));
  Labelled result;
  result.predictions = model.classify(images, a.options);
  for (NamedImage& image : images) result.names.push_back(std::move(image.name));
  return result;
}

Labelled label_lines(const Arguments& a, const Classifier& model) {
  if (!a.files.empty())
    fail(ErrorCode::invalid_argument, "classify", "files",
         "lines on standard input: the model classifies texts", a.files.front());
  const io::TextLines lines = read_standard_lines();
  return {{}, model.classify(all_of(lines), a.options)};
}

void print(const Labelled& all) {
  for (std::size_t i = 0; i < all.predictions.size(); ++i) {
    const Prediction& p = all.predictions[i];
    if (!all.names.empty()) std::cout << all.names[i] << '\t';
    if (p.id >= 0) std::cout << fmt::format("{}\t{:.4f}", p.label, p.probability);
    std::cout << '\n';
  }
}

json to_json(const Labelled& all, const std::vector<std::string>& labels) {
  json list = json::array();
  for (std::size_t i = 0; i < all.predictions.size(); ++i) {
    const Prediction& p = all.predictions[i];
    json j = json::object();
    if (!all.names.empty()) j["name"] = all.names[i];
    if (p.cut) j["cut"] = true;
    if (p.id >= 0) {
      j["label"] = p.label;
      j["probability"] = p.probability;
      for (std::size_t k = 0; k < p.probabilities.size(); ++k)
        j["probabilities"][labels[k]] = p.probabilities[k];
    }
    list.push_back(std::move(j));
  }
  return {{"predictions", std::move(list)}};
}

void run(Arguments& a) {
  const Classifier model(open_model(a.model, model::Task::classify));
  const Labelled all = model.reads_images() ? label_images(a, model) : label_lines(a, model);
  std::size_t cut = 0;
  for (const Prediction& p : all.predictions) cut += p.cut ? 1 : 0;
  if (cut > 0)
    std::cerr << (cut == 1 ? tr("1 line was cut to the {} tokens that the model learned from",
                                model.longest())
                           : tr("{} lines were cut to the {} tokens that the model learned from",
                                cut, model.longest()))
              << "\n";
  if (a.model.as_json)
    cli::print_json(to_json(all, model.labels()));
  else
    print(all);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "classify", "label<TAB>probability of image files, or of the lines of standard input");
  command->footer(
      "Examples: heddle classify runs/vit-fashion shoe.png shirt.png\n"
      "          echo 'what a film' | heddle classify runs/reviews");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  command->add_option("FILES", a->files,
                      "for a model of images: PNG or JPEG files, or IDX files of many images");
  command->add_option("--batch", a->options.batch, "images or lines at a time, at most")
      ->capture_default_str();
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::classify_command
