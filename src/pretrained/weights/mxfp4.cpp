#include "pretrained/weights/mxfp4.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "heddle/error.h"

namespace heddle::pretrained {
namespace {

constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";
constexpr std::int64_t kBytes = 16, kWeights = 2 * kBytes;  // of a block

// Sign, two bits of exponent, one of fraction.
constexpr std::array<float, 16> kE2M1 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                         -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

// The scale's byte is the exponent of a power of two, and 255 is no number.
float power(std::uint8_t exponent) {
  constexpr int kBias = 127, kNone = 255;
  if (exponent == kNone) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, exponent - kBias);
}

// blocks: [.., G, 16] u8, scales: [.., G] u8 -> [.., 32 G]
Tensor decoded(const Tensor& blocks, const Tensor& scales) {
  Shape shape = scales.shape();
  shape[shape.rank() - 1] *= kWeights;
  Tensor values = Tensor::empty(shape, DType::f32);
  const std::uint8_t* bytes = blocks.data<std::uint8_t>();
  const std::uint8_t* exponents = scales.data<std::uint8_t>();
  auto* out = values.mutable_data<float>();
  for (std::int64_t i = 0; i < scales.elements(); ++i) {
    const float scale = power(exponents[i]);
    for (std::int64_t j = 0; j < kBytes; ++j) {
      const unsigned byte = *bytes++;
      *out++ = scale * kE2M1[byte & 15U];
      *out++ = scale * kE2M1[byte >> 4U];
    }
  }
  return values;
}

class Mxfp4Files final : public WeightFiles {
 public:
  explicit Mxfp4Files(std::unique_ptr<WeightFiles> files) : files_(std::move(files)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> all = files_->names();
    std::erase_if(all, [this](const std::string& name) { return is_scales(name); });
    return all;
  }
  bool contains(std::string_view name) const override {
    return files_->contains(name) && !is_scales(name);
  }
  Tensor load(std::string_view name, DType wanted) const override {
    if (!is_blocks(name)) return files_->load(name, wanted);
    return decoded(files_->load(name, DType::f32), files_->load(scales_of(name), DType::f32));
  }
  Tensor load_one(std::string_view name, std::int64_t place) const override {
    if (!is_blocks(name)) return files_->load_one(name, place);
    return decoded(files_->load_one(name, place), files_->load_one(scales_of(name), place));
  }
  Shape shape(std::string_view name) const override {
    if (!is_blocks(name)) return files_->shape(name);
    Shape shape = files_->shape(scales_of(name));
    shape[shape.rank() - 1] *= kWeights;
    return shape;
  }
  std::string type(std::string_view name) const override {
    return is_blocks(name) ? "MXFP4" : files_->type(name);
  }
  std::uint64_t bytes(std::string_view name) const override {
    return files_->bytes(name) + (is_blocks(name) ? files_->bytes(scales_of(name)) : 0);
  }
  std::string where() const override { return files_->where(); }

 private:
  static std::string other(std::string_view name, std::string_view end, std::string_view put) {
    return std::string(name.substr(0, name.size() - end.size())) + std::string(put);
  }
  static std::string scales_of(std::string_view blocks) { return other(blocks, kBlocks, kScales); }

  bool is_scales(std::string_view name) const {
    return name.ends_with(kScales) && is_blocks(other(name, kScales, kBlocks));
  }
  // Two tensors of bytes whose shapes fit.
  bool is_blocks(std::string_view name) const {
    if (!name.ends_with(kBlocks) || !files_->contains(name)) return false;
    const std::string scales = scales_of(name);
    if (!files_->contains(scales) || files_->type(name) != "U8" || files_->type(scales) != "U8")
      return false;
    Shape shape = files_->shape(name);
    if (shape.rank() < 3 || shape[shape.rank() - 1] != kBytes) return false;
    shape.erase(shape.rank() - 1);
    // Beside a dimension of 0 another may be any number.
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / kWeights;
    return shape == files_->shape(scales) && shape[shape.rank() - 1] <= kMost;
  }

  std::unique_ptr<WeightFiles> files_;
};

}  // namespace

std::unique_ptr<WeightFiles> with_mxfp4(std::unique_ptr<WeightFiles> files) {
  const auto ends = [](const std::string& name) { return name.ends_with(kBlocks); };
  if (std::ranges::none_of(files->names(), ends)) return files;
  return std::make_unique<Mxfp4Files>(std::move(files));
}

}  // namespace heddle::pretrained
