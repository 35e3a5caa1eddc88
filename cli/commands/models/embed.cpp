// heddle embed: vectors of the lines of standard input, or of images.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/embedder.h"
#include "heddle/error.h"
#include "heddle/images.h"
#include "io/npy/npy.h"
#include "ops/copy/copy.h"
#include "with_model.h"

namespace heddle::cli::embed_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::string pool, npy;
  std::vector<std::string> files;
  bool normalise = false, as_they_are = false;
  std::int64_t batch = 64;
};

EmbeddingOptions options_of(const Arguments& a) {
  EmbeddingOptions options;
  if (!a.pool.empty())
    options.pool = a.pool == "mean" ? EmbeddingPool::mean : EmbeddingPool::class_token;
  if (a.normalise || a.as_they_are) options.normalise = a.normalise;
  options.batch = a.batch;
  return options;
}

// The shortest digits that give the same number back.
template <class Number>
std::string line_of(std::span<const Number> row) {
  std::string text = "[";
  for (const Number x : row) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", x);
  return text + "]";
}

Tensor vectors_of(const Arguments& a, const Embedder& model, const EmbeddingOptions& options) {
  if (model.reads_images()) {
    if (a.files.empty())
      fail(ErrorCode::invalid_argument, "embed", "images",
           "files (PNG, JPEG or IDX) as arguments: it is a model of images", "none");
    std::vector<NamedImage> images;
    for (const std::string& file : a.files)
      for (NamedImage& image : read_images(file)) images.push_back(std::move(image));
    return model.embed(std::span<const NamedImage>(images), options);
  }
  if (!a.files.empty())
    fail(ErrorCode::invalid_argument, "embed", "files",
         "lines on standard input: it is a model of texts", a.files.front());
  const io::TextLines lines = read_standard_lines();
  return model.embed(all_of(lines), options);
}

// Calls take(row) with each row, as numbers of the type in which they were computed.
template <class Number, class Take>
void each_row(const Tensor& vectors, const Take& take) {
  const auto columns = static_cast<std::size_t>(vectors.size(1));
  for (std::int64_t i = 0; i < vectors.size(0); ++i)
    take(std::span<const Number>(vectors.data<Number>() + i * vectors.size(1), columns));
}

template <class Take>
void each_row(const Tensor& vectors, const Take& take) {
  if (vectors.dtype() == DType::f64)
    each_row<double>(vectors, take);
  else
    each_row<float>(ops::cast(vectors, DType::f32), take);
}

json rows_of(const Tensor& vectors) {
  json rows = json::array();
  each_row(vectors, [&](auto row) { rows.push_back(std::vector(row.begin(), row.end())); });
  return rows;
}

json to_json(const Tensor& vectors, const Embedder& model, const EmbeddingOptions& options) {
  return {{"shape", {vectors.size(0), vectors.size(1)}},
          {"pool", to_string(options.pool.value_or(model.pool()))},
          {"normalised", options.normalise.value_or(model.normalises())},
          {"longest", model.longest()}};
}

void run(const Arguments& a) {
  const Embedder model(open_model(a.model));
  const EmbeddingOptions options = options_of(a);
  const Tensor vectors = with_options_named([&] { return vectors_of(a, model, options); });
  if (!a.npy.empty()) io::write_npy(a.npy, vectors);
  if (a.model.as_json) {
    json document = to_json(vectors, model, options);
    // Where there is a file, the numbers are in it.
    if (a.npy.empty())
      document["vectors"] = rows_of(vectors);
    else
      document["npy"] = a.npy;
    std::cout << document.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    return;
  }
  if (!a.npy.empty()) return;
  each_row(vectors, [](auto row) { std::cout << line_of(row) << "\n"; });
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "embed", "a vector for each line of standard input, or for each image, by an encoder");
  command->footer("Example: printf 'a cat\\na kitten\\n' | heddle embed all-MiniLM-L6-v2");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model, true);
  command->add_option("FILES", a->files,
                      "for a model of images: PNG or JPEG files, or IDX files of many images");
  command
      ->add_option("--pool", a->pool,
                   "what the vector of a text is: class (that of its class token) or mean (of all "
                   "tokens); absent: as the model's files say, or mean")
      ->check(CLI::IsMember({"class", "mean"}));
  CLI::Option* normalise = command->add_flag("--normalise", a->normalise,
                                             "vectors of length 1, also where the model's files "
                                             "do not ask for it");
  command
      ->add_flag("--no-normalise", a->as_they_are,
                 "vectors as they are, also where the model's files ask for length 1")
      ->excludes(normalise);
  command->add_option("--batch", a->batch, "lines at a time, at most")->capture_default_str();
  command
      ->add_option("--npy", a->npy,
                   "write float32 (with fp64 float64) [lines, width] to this file instead")
      ->type_name("FILE");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::embed_command
