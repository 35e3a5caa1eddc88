#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>  // before jpeglib.h

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <cmath>

#include "io/images/image.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes values(const Tensor& t) { return t.to_vector<std::uint8_t>(); }

std::string big_endian(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16 & 0xff),
          static_cast<char>(v >> 8 & 0xff), static_cast<char>(v & 0xff)};
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

struct PngParts {
  std::uint32_t width = 1, height = 1;
  int depth = 8, colour = 0, interlaced = 0;
  std::string extra{};  // chunks before the data
  std::string rows{};   // each with its filter byte
};

// By the book, so that libpng does not test libpng.
std::string png(const PngParts& parts) {
  std::string packed(compressBound(parts.rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(parts.rows.data()), parts.rows.size());
  packed.resize(size);
  const std::string header =
      big_endian(parts.width) + big_endian(parts.height) +
      std::string{static_cast<char>(parts.depth), static_cast<char>(parts.colour), '\0', '\0',
                  static_cast<char>(parts.interlaced)};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + parts.extra + chunk("IDAT", packed) +
         chunk("IEND", "");
}

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int b : list) out += static_cast<char>(b);
  return out;
}

// `components` side by side, 1 (grey), 3 (RGB) or 4 (CMYK).
std::string jpeg(const Bytes& pixels, unsigned width, unsigned height, int components,
                 std::span<const jpeg_scan_info> scans = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (!scans.empty()) {
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + std::size_t{info.next_scanline} * width *
                                                         static_cast<unsigned>(components));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string text(reinterpret_cast<const char*>(out), size);
  std::free(out);
  return text;
}

using Scans = std::vector<jpeg_scan_info>;

// The constant parts first, then the rest of each component with a bit left for later.
Scans few_scans(int components) {
  Scans scans = {{components, {0, 1, 2}, 0, 0, 0, 0}};
  for (int c = 0; c < components; ++c) scans.push_back({1, {c}, 1, 63, 0, 1});
  for (int c = 0; c < components; ++c) scans.push_back({1, {c}, 1, 63, 1, 0});
  return scans;
}

Bytes gradient(unsigned width, unsigned height, unsigned components) {
  Bytes out;
  for (unsigned y = 0; y < height; ++y)
    for (unsigned x = 0; x < width; ++x)
      for (unsigned c = 0; c < components; ++c)
        out.push_back(static_cast<std::uint8_t>(40 + 3 * x + 2 * y + 20 * c));
  return out;
}

TEST(Image, WritesPngAndReadsItBack) {
  const TempDir dir;
  for (const std::int64_t channels : {1, 3}) {
    Bytes pixels(static_cast<std::size_t>(channels) * 5 * 7);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
    const Tensor image =
        Tensor::from<std::uint8_t>({channels, 5, 7}, std::span<const std::uint8_t>(pixels));
    write_png(dir.file("a.png"), image);
    const Tensor read = read_image(dir.file("a.png"));
    EXPECT_EQ(read.shape(), image.shape());
    EXPECT_EQ(values(read), pixels);
  }
  const auto refused = [](const Tensor& t) { EXPECT_THROW(encode_png(t), Error) << t.describe(); };
  refused(Tensor());
  refused(Tensor::zeros({1, 2, 2}));
  refused(Tensor::zeros({2, 2}, DType::u8));
  refused(Tensor::zeros({2, 2, 2}, DType::u8));
  refused(Tensor::zeros({1, 0, 2}, DType::u8));
}

TEST(Image, ExpandsPalettesAndFewBits) {
  const std::string palette = chunk("PLTE", bytes({255, 0, 0, 0, 255, 0, 1, 2, 3}));
  const Tensor p = decode_image(
      png({.width = 3, .depth = 8, .colour = 3, .extra = palette, .rows = bytes({0, 2, 0, 1})}),
      "p");
  EXPECT_EQ(p.shape(), (Shape{3, 1, 3}));
  EXPECT_EQ(values(p), (Bytes{1, 255, 0, 2, 0, 255, 3, 0, 0}));
  // Entry 0 is invisible: white.
  const Tensor t = decode_image(png({.width = 2,
                                     .depth = 4,
                                     .colour = 3,
                                     .extra = palette + chunk("tRNS", bytes({0})),
                                     .rows = bytes({0, 0x01})}),
                                "t");
  EXPECT_EQ(values(t), (Bytes{255, 0, 255, 255, 255, 0}));
  const Tensor one_bit = decode_image(png({.width = 4, .depth = 1, .rows = bytes({0, 0xa0})}), "1");
  EXPECT_EQ(one_bit.shape(), (Shape{1, 1, 4}));
  EXPECT_EQ(values(one_bit), (Bytes{255, 0, 255, 0}));
}

TEST(Image, ReducesSixteenBitsByRounding) {
  const Tensor t = decode_image(
      png({.width = 3, .depth = 16, .rows = bytes({0, 0x12, 0x34, 0x00, 0xff, 0xff, 0xff})}), "t");
  EXPECT_EQ(values(t), (Bytes{0x12, 0x01, 0xff}));  // 0x00ff is nearer to 1 than to 0
}

TEST(Image, PutsWhatIsTransparentOnWhite) {
  const Tensor grey = decode_image(
      png({.width = 3, .colour = 4, .rows = bytes({0, 100, 255, 100, 0, 100, 51})}), "ga");
  EXPECT_EQ(grey.shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(values(grey), (Bytes{100, 255, 224}));  // 100 / 5 + 255 * 4 / 5
  const Tensor colour =
      decode_image(png({.colour = 6, .rows = bytes({0, 10, 20, 30, 128})}), "rgba");
  EXPECT_EQ(values(colour), (Bytes{132, 137, 142}));
}

TEST(Image, ReadsInterlacedPng) {
  // 2 x 2, Adam7: pass 1 has (0, 0), pass 6 (1, 0), pass 7 the second row.
  const Tensor t = decode_image(
      png({.width = 2, .height = 2, .interlaced = 1, .rows = bytes({0, 1, 0, 2, 0, 3, 4})}), "t");
  EXPECT_EQ(values(t), (Bytes{1, 2, 3, 4}));
}

TEST(Image, ReadsJpeg) {
  for (const int components : {1, 3}) {
    for (const bool progressive : {false, true}) {
      const Bytes pixels = gradient(24, 17, static_cast<unsigned>(components));
      const Tensor t = decode_image(
          jpeg(pixels, 24, 17, components, progressive ? few_scans(components) : Scans{}), "j");
      ASSERT_EQ(t.shape(), (Shape{components, 17, 24}));
      const Bytes got = values(t);
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t pixel = i / static_cast<std::size_t>(components);
        const std::size_t channel = i % static_cast<std::size_t>(components);
        EXPECT_NEAR(got[channel * 24 * 17 + pixel], pixels[i], 6);
      }
    }
  }
}

TEST(Image, RefusesHostilePng) {
  const std::string good = png({.width = 2, .rows = bytes({0, 1, 2})});
  const auto decode = [](const std::string& b, const ImageLimits& limits = {}) {
    return [b, limits] { decode_image(b, "f.png", limits); };
  };
  EXPECT_NO_THROW(decode(good)());
  expect_refusal(decode(""), {"f.png", "offset 0"});
  expect_refusal(decode("GIF89a"), {"f.png", "offset 0", "\"GIF89a\""});
  expect_refusal(decode(good.substr(0, 8)), {"f.png", "at offset 8", "too early"});
  for (std::size_t cut = 4; cut < good.size(); ++cut)
    expect_refusal(decode(good.substr(0, cut)), {"f.png", "at offset"});
  std::string bad_sum = good;
  bad_sum[30] ^= 1;
  expect_refusal(decode(bad_sum), {"CRC"});
  expect_refusal(decode(png({.width = 0, .rows = bytes({0})})), {"f.png"});
  expect_refusal(decode(png({.width = 20000, .rows = bytes({0})})), {"f.png"});
  expect_refusal(decode(png({.width = 16000, .height = 16000, .rows = bytes({0})})),
                 {"f.png", "16000 x 16000"});
  expect_refusal(decode(png({.width = 8000, .height = 8000, .rows = bytes({0})})),
                 {"too short for its size"});
  expect_refusal(decode(good, {.max_side = 1}), {"f.png"});
  expect_refusal(decode(png({.depth = 3, .rows = bytes({0})})), {"f.png"});
  expect_refusal(decode(png({.colour = 3, .rows = bytes({0, 0})})), {"f.png"});  // no palette
}

TEST(Image, RefusesHostileJpeg) {
  const std::string good = jpeg(gradient(64, 64, 3), 64, 64, 3);
  const auto decode = [](const std::string& b, const ImageLimits& limits = {}) {
    return [b, limits] { decode_image(b, "f.jpg", limits); };
  };
  EXPECT_NO_THROW(decode(good)());
  EXPECT_NO_THROW(decode(good + "trailing")());
  expect_refusal(decode("\xff\xd8"), {"f.jpg", "at offset"});
  for (std::size_t cut = 2; cut + 2 < good.size(); cut += 97)
    expect_refusal(decode(good.substr(0, cut)), {"f.jpg", "at offset"});
  expect_refusal(decode(good, {.max_side = 63}), {"f.jpg", "64 x 64"});
  expect_refusal(decode(good, {.max_pixels = 4095}), {"64 x 64", "4095"});
  expect_refusal(decode(jpeg(gradient(8, 8, 4), 8, 8, 4)), {"f.jpg", "4 components"});
}

// As many scans as the format allows: each coefficient by itself, one bit at a time.
Scans endless_scans() {
  Scans scans;
  for (int coefficient = 0; coefficient < 64; ++coefficient)
    for (int bit = 5; bit >= 0; --bit)
      scans.push_back({1, {0}, coefficient, coefficient, bit == 5 ? 0 : bit + 1, bit});
  return scans;
}

TEST(Image, LimitsScansOfProgressiveFiles) {
  const Bytes pixels = gradient(16, 16, 1);
  const Scans scans = endless_scans();
  const std::span few(scans.begin(), 60);
  EXPECT_NO_THROW(decode_image(jpeg(pixels, 16, 16, 1, few), "few.jpg"));
  expect_refusal([&] { decode_image(jpeg(pixels, 16, 16, 1, scans), "many.jpg"); },
                 {"many.jpg", "too many scans"});
}

RC_GTEST_PROP(Image, PngRoundTrip, ()) {
  const std::int64_t channels = *rc::gen::element<std::int64_t>(1, 3);
  const auto height = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto width = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto pixels = *rc::gen::container<Bytes>(
      static_cast<std::size_t>(channels * height * width), rc::gen::arbitrary<std::uint8_t>());
  const Tensor image =
      Tensor::from<std::uint8_t>({channels, height, width}, std::span<const std::uint8_t>(pixels));
  RC_ASSERT(values(decode_image(encode_png(image), "x")) == pixels);
}

TEST(Image, SurvivesMutations) {
  const ImageLimits limits = {.max_side = 500, .max_pixels = 100000};
  const std::string palette = chunk("PLTE", bytes({255, 0, 0, 0, 255, 0}));
  const std::string files[] = {
      png({.width = 2, .height = 2, .interlaced = 1, .rows = bytes({0, 1, 0, 2, 0, 3, 4})}),
      png({.width = 3,
           .colour = 3,
           .extra = palette + chunk("tRNS", bytes({7})),
           .rows = bytes({0, 1, 0, 1})}),
      jpeg(gradient(24, 17, 3), 24, 17, 3),
      jpeg(gradient(24, 17, 3), 24, 17, 3, few_scans(3)),
  };
  for (const std::string& file : files) {
    const int refused = survive_mutations(
        file, 1500, [&](const std::string& b) { decode_image(b, "fuzz", limits); });
    EXPECT_GT(refused, 500);
  }
}

}  // namespace
}  // namespace heddle::io
