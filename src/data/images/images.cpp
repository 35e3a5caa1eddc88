// Images with labels: IDX files, or a folder of PNG and JPEG files for each class.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/parallel_each.h"
#include "data/images/image_data.h"
#include "data/loading.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/memory_limit.h"
#include "io/images/idx.h"
#include "io/images/image.h"
#include "language/language.h"
#include "language/layout.h"
#include "nn/require.h"

namespace heddle::data {
namespace {

namespace fs = std::filesystem;

// The images of a split's files. Labels are numbers for IDX, and for folders places in `classes`.
struct RawImages {
  ImageStore store;
  std::vector<std::string> classes;  // names of folders; empty for IDX
  std::string labels_file;           // IDX: what errors about labels name
};

RawImages read_idx_files(const LoadRequest& request, const Files& files) {
  const std::string image_path = resolve_path(request.config, files.images);
  RawImages raw;
  raw.labels_file = resolve_path(request.config, files.labels);
  const Tensor images = io::read_idx(image_path);
  const Tensor labels = io::read_idx(raw.labels_file);
  if (images.rank() != 3 || images.elements() == 0)
    fail(ErrorCode::io, image_path, "holds no images", "[images, height, width], none of them 0",
         to_string(images.shape()));
  if (labels.rank() != 1)
    fail(ErrorCode::io, raw.labels_file, "holds no labels", "[labels]", to_string(labels.shape()));
  if (labels.size(0) != images.size(0))
    fail(ErrorCode::io, raw.labels_file, "number of labels",
         std::to_string(images.size(0)) + ", one for each image of " + image_path,
         std::to_string(labels.size(0)));
  raw.store.channels = 1;
  raw.store.height = images.size(1);
  raw.store.width = images.size(2);
  raw.store.pixels = images.to_vector<std::uint8_t>();
  const std::vector<std::uint8_t> numbers = labels.to_vector<std::uint8_t>();
  raw.store.labels.assign(numbers.begin(), numbers.end());
  return raw;
}

// The entries of a folder, by name; names that begin with a dot are not data.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().front() != '.') entries.push_back(at->path());
  if (error) fail(ErrorCode::io, folder.string(), "cannot be read: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

struct ImageFile {
  std::string path;
  std::int32_t label = 0;
};

std::vector<ImageFile> list_folder(const fs::path& root, std::vector<std::string>& classes) {
  if (!fs::is_directory(root))
    fail(ErrorCode::io, root.string(), "is no folder", "a folder with a folder for each class");
  std::vector<ImageFile> files;
  for (const fs::path& folder : entries_of(root)) {
    if (!fs::is_directory(folder))
      fail(ErrorCode::io, folder.string(), "lies beside the folders of the classes",
           "nothing but folders in " + root.string());
    const auto label = static_cast<std::int32_t>(classes.size());
    classes.push_back(folder.filename().string());
    const std::vector<fs::path> entries = entries_of(folder);
    if (entries.empty()) fail(ErrorCode::io, folder.string(), "is a class without images");
    for (const fs::path& entry : entries) files.push_back({entry.string(), label});
  }
  if (files.empty())
    fail(ErrorCode::io, root.string(), "is empty", "a folder with a folder for each class");
  return files;
}

void copy_into(ImageStore& store, std::size_t place, const Tensor& image) {
  const std::vector<std::uint8_t> bytes = image.to_vector<std::uint8_t>();
  auto out = store.pixels.begin() + static_cast<std::ptrdiff_t>(place * store.image_bytes());
  const std::int64_t copies = image.size(0) == 1 ? store.channels : 1;  // grey among coloured ones
  for (std::int64_t i = 0; i < copies; ++i) out = std::copy(bytes.begin(), bytes.end(), out);
}

RawImages read_folder(const LoadRequest& request, const Files& files) {
  RawImages raw;
  const std::vector<ImageFile> list =
      list_folder(resolve_path(request.config, files.image_folder), raw.classes);
  std::vector<Tensor> images(list.size());
  std::atomic<std::size_t> bytes{0};  // a few kilobytes of PNG may be a hundred megabytes of pixels
  parallel_each(static_cast<std::int64_t>(list.size()), 16, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    images[place] = io::read_image(list[place].path);
    if (bytes.fetch_add(images[place].bytes()) + images[place].bytes() > io::file_limit())
      fail(ErrorCode::io, list[place].path, "is too large together with the images before it",
           "at most " + io::file_limit_text(), "more");
  });
  ImageStore& store = raw.store;
  store.height = images[0].size(1);
  store.width = images[0].size(2);
  for (std::size_t i = 0; i < list.size(); ++i) {
    store.channels = std::max(store.channels, images[i].size(0));
    store.labels.push_back(list[i].label);
    const auto sides = [](std::int64_t height, std::int64_t width) {
      return std::to_string(width) + " x " + std::to_string(height);
    };
    if (images[i].size(1) != store.height || images[i].size(2) != store.width)
      fail(ErrorCode::io, list[i].path, "image of another size",
           sides(store.height, store.width) + " pixels as " + list[0].path,
           sides(images[i].size(1), images[i].size(2)));
  }
  store.pixels.resize(list.size() * store.image_bytes());
  for (std::size_t i = 0; i < list.size(); ++i) {
    copy_into(store, i, images[i]);
    images[i] = {};
  }
  return raw;
}

RawImages read_images(const LoadRequest& request, Split split) {
  const Files& files = request.config.files(split);
  return files.image_folder.empty() ? read_idx_files(request, files) : read_folder(request, files);
}

std::vector<std::string> numbered_labels(const LoadRequest& request, const RawImages& raw) {
  if (!request.config.label_names.empty()) return request.config.label_names;
  const std::int32_t largest = *std::max_element(raw.store.labels.begin(), raw.store.labels.end());
  std::vector<std::string> names;
  for (std::int32_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  return names;
}

// From the numbers of the files to those of the codec.
void translate_labels(const Codec& codec, const std::string& folder, RawImages& raw) {
  const auto classes = static_cast<std::int32_t>(codec.labels().size());
  if (raw.classes.empty()) {
    for (std::size_t i = 0; i < raw.store.labels.size(); ++i)
      if (raw.store.labels[i] >= classes)
        fail(ErrorCode::io, raw.labels_file, "label of image " + std::to_string(i),
             "0 to " + std::to_string(classes - 1), std::to_string(raw.store.labels[i]));
    return;
  }
  std::vector<std::int32_t> ids;
  for (const std::string& name : raw.classes) {
    const auto id = codec.label_id(name);
    if (!id)
      fail(ErrorCode::io, (fs::path(folder) / name).string(),
           "class that the training data did not have",
           "one of its " + std::to_string(classes) + " classes", io::shown(name));
    ids.push_back(*id);
  }
  for (std::int32_t& label : raw.store.labels) label = ids[static_cast<std::size_t>(label)];
}

// Grey images become coloured ones where the codec has colours; other sizes are refused.
void fit_size(const Codec& codec, const std::string& where, ImageStore& store) {
  const ImageFacts& facts = *codec.image();
  if (store.channels == 1 && facts.channels > 1) {
    ImageStore coloured{facts.channels, store.height, store.width, {}, std::move(store.labels)};
    const std::size_t plane = store.image_bytes();
    for (std::size_t at = 0; at < store.pixels.size(); at += plane)
      for (std::int64_t i = 0; i < facts.channels; ++i)
        coloured.pixels.insert(coloured.pixels.end(),
                               store.pixels.begin() + static_cast<std::ptrdiff_t>(at),
                               store.pixels.begin() + static_cast<std::ptrdiff_t>(at + plane));
    store = std::move(coloured);
  }
  const Shape own{store.channels, store.height, store.width};
  const Shape wanted{facts.channels, facts.height, facts.width};
  if (!(own == wanted))
    fail(ErrorCode::io, where, "images of another size",
         to_string(wanted) + " (channels, height, width)", to_string(own));
}

struct ImageSplit {
  std::shared_ptr<RawImages> raw = {};    // held-out images are in those of training
  std::vector<std::int64_t> chosen = {};  // of raw
};
using ImageSplits = std::array<ImageSplit, kSplits>;

ImageSplits read_image_splits(const LoadRequest& request) {
  ImageSplits splits;
  auto& [training, validation, test] = splits;
  if (request.reads_training()) {
    training.raw = std::make_shared<RawImages>(read_images(request, Split::training));
    const std::int64_t count = training.raw->store.count();
    const double share = request.held_out_share();
    std::vector<bool> held(static_cast<std::size_t>(count));
    if (share > 0) {
      held = held_out(count, share, "data.validation_share");
      validation.raw = training.raw;
    }
    for (std::int64_t i = 0; i < count; ++i)
      (held[static_cast<std::size_t>(i)] ? validation : training).chosen.push_back(i);
  }
  for (const Split split : {Split::validation, Split::test}) {
    if (!request.wants(split) || !request.config.files(split).given()) continue;
    ImageSplit& own = splits[static_cast<std::size_t>(split)];
    own.raw = std::make_shared<RawImages>(read_images(request, split));
    own.chosen.resize(static_cast<std::size_t>(own.raw->store.count()));
    std::iota(own.chosen.begin(), own.chosen.end(), std::int64_t{0});
  }
  return splits;
}

std::shared_ptr<const Codec> make_codec(const LoadRequest& request, const RawImages& raw,
                                        std::span<const std::int64_t> chosen) {
  CodecParts parts;
  parts.task = request.task;
  parts.labels = raw.classes.empty() ? numbered_labels(request, raw) : raw.classes;
  parts.image = measure_images(raw.store, chosen);
  return std::make_shared<Codec>(std::move(parts));
}

void check_shift(const LoadRequest& request, const Codec& codec) {
  const std::int64_t side = std::min(codec.image()->height, codec.image()->width);
  if (request.config.shift >= side)
    nn::refuse("[data]", {"data.shift", "data.images", "data.image_folder"},
               "less than the side of an image, " + std::to_string(side),
               std::to_string(request.config.shift));
}

std::string describe_images(const Codec& codec) {
  const ImageFacts& facts = *codec.image();
  const std::string size =
      facts.channels == 1 ? tr("{} x {}, 1 channel", facts.width, facts.height)
                          : tr("{} x {}, {} channels", facts.width, facts.height, facts.channels);
  return padded(tr("images:"), 12) + size + "\n" + describe_labels(codec);
}

}  // namespace

std::unique_ptr<Dataset> open_images(const LoadRequest& request) {
  const ImageSplits read = read_image_splits(request);
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec
                            : make_codec(request, *read[0].raw, read[0].chosen);
  check_shift(request, *codec);

  std::array<ExampleSplit, kSplits> splits;
  std::string summary = describe_images(*codec);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto split = static_cast<Split>(i);
    const ImageSplit& own = read[i];
    if (!own.raw) continue;
    const bool held_out_part = i > 0 && own.raw == read[0].raw;
    if (!held_out_part) {
      translate_labels(*codec, request.config.files(split).image_folder, *own.raw);
      fit_size(*codec, request.config.files(split).first(), own.raw->store);
    }
    if (!request.wants(split)) continue;
    Augmentation augmentation;
    if (split == Split::training) augmentation = {request.config.flip, request.config.shift};
    const std::shared_ptr<const ImageStore> store(own.raw, &own.raw->store);
    splits[i].examples =
        std::make_unique<ImageExamples>(store, own.chosen, *codec->image(), augmentation);
    SplitFacts facts;
    facts.unit = "images";
    facts.examples = static_cast<std::int64_t>(own.chosen.size());
    summary += describe(split, facts, 0);
  }
  return std::make_unique<ExampleDataset>(codec, std::move(splits), std::move(summary));
}

}  // namespace heddle::data
