// patch-conv: is the first layer of a vision Transformer a convolution or a linear layer?
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/linear/linear.h"
#include "ops/patch_embed/patch_embed.h"
#include "ops/view/view.h"

namespace heddle::lab::patch_conv {

namespace {

constexpr std::int64_t kPatch = 16, kChannels = 3, kHeight = 48, kWide = 64, kOut = 8;
constexpr std::int64_t kPixels = kChannels * kPatch * kPatch;  // 768
constexpr std::int64_t kDown = kHeight / kPatch, kAcross = kWide / kPatch;
constexpr double kSame = 1e-12;  // sums of 768 products of size 1 round to 1e-13

// Convolution by its definition: the kernel stands at (y, x), and moves on by `stride`.
Tensor convolution(const Findings& f, const Tensor& image, const Tensor& kernel,
                   std::int64_t stride) {
  const std::int64_t right = f.fault("one-pixel-right") ? 1 : 0;
  const double* pixels = image.data<double>();    // [C, H, W]
  const double* weights = kernel.data<double>();  // [D, C, P, P]
  std::vector<double> out;                        // [tokens, D]
  for (std::int64_t y = 0; y + kPatch <= kHeight; y += stride)
    for (std::int64_t x = 0; x + kPatch <= kWide; x += stride)
      for (std::int64_t d = 0; d < kOut; ++d) {
        double sum = 0;
        for (std::int64_t i = 0; i < kPixels; ++i) {
          const std::int64_t c = i / (kPatch * kPatch), p = i / kPatch % kPatch, q = i % kPatch;
          sum += pixels[(c * kHeight + y + p) * kWide + (x + q + right) % kWide] *
                 weights[d * kPixels + i];
        }
        out.push_back(sum);
      }
  const auto tokens = static_cast<std::int64_t>(out.size()) / kOut;
  return Tensor::from<double>({tokens, kOut}, std::span<const double>(out));
}

// Patches as rows: [tokens, 768], a patch's numbers in the order (channel, row, column), or with
// the channels last.
Tensor flattened(const Findings& f, const Tensor& image, bool channels_last) {
  const Tensor cut = ops::reshape(image, {kChannels, kDown, kPatch, kAcross, kPatch});
  const bool turned = f.fault("patch-turned");  // its rows become columns
  const int first[] = {1, 3, 0, turned ? 4 : 2, turned ? 2 : 4}, last[] = {1, 3, 2, 4, 0};
  return ops::reshape(ops::permute(cut, channels_last ? last : first), {kDown * kAcross, kPixels});
}

void run(Findings& f) {
  const Tensor image = normal({kChannels, kHeight, kWide}, 70);
  const Tensor kernel = normal({kOut, kChannels, kPatch, kPatch}, 71, 1 / std::sqrt(768.0));
  const Tensor convolved = convolution(f, image, kernel, kPatch);
  const auto off = [&](const Tensor& y) {
    return largest_difference(convolved, f.fault("convolution-twice") ? convolved : y);
  };
  const Tensor matrix = ops::reshape(kernel, {kOut, kPixels});  // [D, 768]
  const Tensor linear = ops::linear(flattened(f, image, false), matrix);
  const Tensor embedded =
      ops::reshape(ops::patch_embed(ops::reshape(image, {1, kChannels, kHeight, kWide}), kernel),
                   {kDown * kAcross, kOut});
  const double by_linear = off(linear), by_layer = off(embedded);
  const double other_order = off(ops::linear(flattened(f, image, true), matrix));
  const auto overlapping = static_cast<double>(convolution(f, image, kernel, kPatch / 2).size(0));
  f.number("linear", by_linear, tr("convolution − flatten + linear"));
  f.number("heddle", by_layer, tr("convolution − Heddle's patch embedding"));
  f.number("other_order", other_order, tr("the same with patches flattened channels last"));
  f.number("inputs", static_cast<double>(kPixels), tr("numbers of a patch"));
  f.number("tokens", static_cast<double>(convolved.size(0)), tr("patches of the image, stride 16"));
  f.number("tokens_half_stride", overlapping, tr("places of the kernel with stride 8"));

  report::HeatMap map;
  map.x_label = tr("output channel");
  map.y_label = tr("patch");
  map.values = rows_of(convolved);
  f.figure(map, tr("The tokens that come out: 12 patches of an image of 48 × 64 pixels, 8 channels "
                   "each. All three ways give this table."));
  // By hand: (48/16)·(64/16) patches; with stride 8 the kernel has 5 places down and 7 across.
  f.control(tr("patches of the image"), static_cast<double>(convolved.size(0)), Relation::equal,
            12);
  f.control(tr("places of the kernel with stride 8"), overlapping, Relation::equal, 35);
  f.control(tr("numbers of a patch"), static_cast<double>(kPixels), Relation::equal, 768);
  const bool same = f.check(tr("flatten + linear differs by"), by_linear, Relation::less, kSame);
  const bool product = f.check(tr("Heddle's layer differs by"), by_layer, Relation::less, kSame);
  const bool order =
      f.check(tr("flattened in another order it differs by"), other_order, Relation::greater, 0.01);
  f.verdict(same && product && order ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "patch-conv",
      .topic = topics::building_blocks,
      .title = mark("A convolution that is a linear layer"),
      .claim = mark("A 16 × 16 convolution with stride 16, 3 input and D output channels is the "
                    "same as flattening the patches and a linear layer from 768 to D."),
      .formula = "y = W x + b quad 16 · 16 · 3 = 768",
      .source = mark("Document 002, ViT."),
      .method = mark("A convolution by its definition, a linear layer on flattened patches and "
                     "Heddle's patch embedding on a random image of 48 × 64 pixels, D = 8, in "
                     "float64; and what happens when patches are flattened in another order."),
      .threshold = mark(
          "1e-12: sums of 768 products round to 1e-13. Another order must differ by 0.01 or more."),
      .expected = Verdict::holds,
      .because = mark("With the stride as large as the kernel every pixel belongs to one patch, so "
                      "the convolution is one scalar product per patch and channel. The weights "
                      "must be flattened in the same order as the pixels; with a smaller stride "
                      "patches overlap and there are more tokens."),
      .faults = {{"patch-turned", mark("patches are flattened column by column")},
                 {"one-pixel-right", mark("the kernel stands one pixel too far right")},
                 {"convolution-twice", mark("the convolution is compared with itself")}},
      .run = run,
  };
}

}  // namespace heddle::lab::patch_conv
