#include "pretrained/beside/images.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/json/json.h"
#include "io/toml/toml.h"
#include "pretrained/settings/common.h"

namespace heddle::pretrained {
namespace {

using io::TomlTable;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr io::IntegerRange kPixels = {1, 1 << 16};

using data::ImageSize;

std::string image_settings_file(const std::string& directory) {
  return directory + "/preprocessor_config.json";
}

// What one number as the size means: a square, or the shorter side.
bool is_square_by_default(const nlohmann::json& said) {
  if (said.contains("default_to_square") && said["default_to_square"].is_boolean())
    return said["default_to_square"].get<bool>();
  for (const char* const key : {"image_processor_type", "feature_extractor_type"})
    if (said.contains(key) && said[key].is_string())
      return !said[key].get_ref<const std::string&>().starts_with("Bit");
  return true;
}

io::TomlDocument read_settings(const std::string& directory) {
  const std::string path = image_settings_file(directory);
  if (!io::file_exists(path))
    fail(ErrorCode::io, path, "is missing: it says how images become numbers",
         "the file that was published with the model");
  // Older files give one number: for both sides, or for the shorter one where they say so or come
  // from a class that means it.
  nlohmann::json said = io::Json::read(path, {.max_bytes = kMostBytes}).raw();
  for (const char* const key : {"size", "crop_size"})
    if (said.is_object() && said.contains(key) && said[key].is_number()) {
      if (std::string_view(key) == "size" && !is_square_by_default(said))
        said[key] = {{"shortest_edge", said[key]}};
      else
        said[key] = {{"height", said[key]}, {"width", said[key]}};
    }
  return io::TomlDocument::of_json(io::Json::parse(said.dump(), path, {.max_bytes = kMostBytes}));
}

// Nothing where only the shorter side is said, because what is cut out of the middle decides then.
std::optional<ImageSize> read_size(const TomlTable& s, std::string_view key) {
  const TomlTable t = s.table(key);
  if (t.has("shortest_edge")) {
    (void)t.integer("shortest_edge", kPixels);
    return std::nullopt;
  }
  return ImageSize{t.integer("height", kPixels), t.integer("width", kPixels)};
}

// Of the images as the model gets them.
std::optional<ImageSize> last_size(const TomlTable& s) {
  const bool resized = s.boolean_or("do_resize", true);
  const bool cut = s.boolean_or("do_center_crop", false);
  std::optional<ImageSize> size;
  if (s.has("size")) size = read_size(s, "size");
  if (!resized) size.reset();
  std::optional<ImageSize> middle;
  if (s.has("crop_size")) middle = read_size(s, "crop_size");
  if (cut && !middle) s.refuse("do_center_crop", "a crop_size with height and width beside it");
  return cut ? middle : size;
}

// By number, or by the class that made the file, each of which has one. Nothing where neither is
// there: images of other sizes are refused then.
std::optional<data::ResizeFilter> read_filter(const TomlTable& s) {
  using data::ResizeFilter;
  const std::string type =
      s.string_or("image_processor_type", s.string_or("feature_extractor_type", ""));
  if (s.has("resample")) {
    constexpr io::IntegerRange kFilters = {1, 5};
    return static_cast<ResizeFilter>(s.integer("resample", kFilters));
  }
  if (type.starts_with("ViT")) return ResizeFilter::bilinear;
  if (type.starts_with("DeiT") || type.starts_with("Bit")) return ResizeFilter::bicubic;
  return std::nullopt;
}

// Whether and how images are resized, and what is taken of them.
std::optional<data::ImageFit> read_fit(const TomlTable& s) {
  data::ImageFit fit;
  if (s.boolean_or("do_center_crop", false) && s.has("crop_size"))
    fit.middle = read_size(s, "crop_size");
  if (s.boolean_or("do_resize", true) && s.has("size")) {
    const auto filter = read_filter(s);
    if (!filter) return std::nullopt;
    fit.filter = *filter;
    const TomlTable size = s.table("size");
    if (size.has("shortest_edge"))
      fit.shorter = size.integer("shortest_edge", kPixels);
    else
      fit.size = read_size(s, "size");
  }
  if (!fit.size && fit.shorter == 0 && !fit.middle) return std::nullopt;
  return fit;
}

// Keys that say how, and change nothing of what the model gets.
void pass_over_ways(const TomlTable& s) {
  pass_over(s, {"resample", "do_convert_rgb", "default_to_square", "data_format",
                "input_data_format", "device", "disable_grouping", "return_tensors"});
  pass_over(s, {"image_processor_type", "feature_extractor_type", "processor_class",
                "_valid_processor_keys", "image_seq_length"});
}

// Bytes become numbers from 0 to 1, as everywhere in Heddle.
void check_scale(const TomlTable& s) {
  require_switch(s, "do_rescale", true, true);
  constexpr double kStep = 1.0 / 255, kNear = 1e-9;
  if (std::abs(s.number_or("rescale_factor", kStep) - kStep) > kNear)
    s.refuse("rescale_factor", "1/255: pixels are numbers from 0 to 1");
}

std::vector<float> read_channels(const TomlTable& s, std::string_view key, std::int64_t channels,
                                 io::NumberRange range) {
  if (!s.has(key)) s.refuse(key, "a number for each channel");
  std::vector<float> values;
  for (const double x : s.numbers(key, range)) values.push_back(static_cast<float>(x));
  if (std::ssize(values) != channels)
    s.refuse(key, std::to_string(channels) + " numbers, one for each channel");
  return values;
}

}  // namespace

data::ImageFacts read_image_facts(const std::string& directory, const model::ModelConfig& config) {
  const io::TomlDocument document = read_settings(directory);
  const TomlTable s = document.root();
  pass_over_ways(s);
  check_scale(s);
  data::ImageFacts facts{config.sizes.channels, config.sizes.height, config.sizes.width};
  const auto channels = static_cast<std::size_t>(facts.channels);
  if (const auto size = last_size(s);
      size && (size->height != facts.height || size->width != facts.width))
    s.refuse(s.boolean_or("do_center_crop", false) ? "crop_size" : "size",
             std::to_string(facts.height) + " × " + std::to_string(facts.width) +
                 " pixels, as config.json says");
  facts.fit = read_fit(s);
  if (s.boolean_or("do_normalize", true)) {
    facts.mean = read_channels(s, "image_mean", facts.channels, {-1e3, 1e3});
    facts.deviation = read_channels(s, "image_std", facts.channels, {1e-6, 1e3});
  } else {
    pass_over(s, {"image_mean", "image_std"});
    facts.mean.assign(channels, 0.0F);
    facts.deviation.assign(channels, 1.0F);
  }
  document.finish();
  return facts;
}

void take_image_size(const std::string& directory, model::ModelConfig& config) {
  if (!io::file_exists(image_settings_file(directory))) return;
  const io::TomlDocument document = read_settings(directory);
  const auto size = last_size(document.root());
  if (!size) return;
  config.sizes.height = size->height;
  config.sizes.width = size->width;
}

}  // namespace heddle::pretrained
