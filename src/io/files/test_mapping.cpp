#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "io/files/mapping.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

TEST(Mapping, ShowsTheBytesOfTheFile) {
  const TempDir dir;
  const std::string path = dir.file("f", "abc");
  const Descriptor file = open_regular(path, O_RDONLY);
  Mapping first(file, path, 3);
  const Mapping mapping = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  ASSERT_EQ(mapping.bytes().size(), 3u);
  EXPECT_TRUE(std::ranges::equal(mapping.bytes(), std::string_view("abc")));
}

TEST(Mapping, NothingOfAnEmptyFile) {
  const TempDir dir;
  const std::string path = dir.file("f", "");
  EXPECT_TRUE(Mapping(open_regular(path, O_RDONLY), path, 0).bytes().empty());
}

TEST(Mapping, RefusesWhatCannotBeMapped) {
  const TempDir dir;
  const std::string path = dir.file("f", "abc");
  const Descriptor file = open_regular(path, O_RDONLY);
  expect_refusal([&] { const Mapping m(file, path, ~std::uint64_t{0}); }, {path, "too large"});
  expect_refusal([&] { const Mapping m(Descriptor(), path, 3); }, {path, "cannot map"});
}

TEST(Mapping, LengthIsCheckedAgain) {
  const TempDir dir;
  const std::string path = dir.file("f", "abc");
  const Descriptor file = open_regular(path, O_RDONLY);
  check_length(file, path, 3);
  std::filesystem::resize_file(path, 2);
  expect_refusal([&] { check_length(file, path, 3); }, {path, "became shorter", "3 bytes", "2"});
}

}  // namespace
}  // namespace heddle::io
