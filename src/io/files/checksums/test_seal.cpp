#include "io/files/checksums/seal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "io/toml/toml.h"

namespace heddle::io {
namespace {

const std::vector<std::string_view> kKeys = {"losses", "name"};

// CRC-32 of the nine digits is the check value of the algorithm.
TEST(Seal, IsCrc32) { EXPECT_EQ(crc32_of("123456789"), "cbf43926"); }

TEST(Seal, JsonComesBackWithoutItsSealBeingAValue) {
  const TempDir dir;
  const std::string path = dir.file("a.json");
  write_sealed_json(path, {{"name", "ü"}, {"losses", {1.0 / 3, 2.0}}});
  const nlohmann::json written = nlohmann::json::parse(slurp(path));
  EXPECT_EQ(written["crc32"], crc32_of("{\"losses\":[0.3333333333333333,2.0],\"name\":\"ü\"}"));
  EXPECT_EQ(read_sealed_json(path, kKeys).at("losses").numbers()[0], 1.0 / 3);
  // Blanks do not count, values and names do.
  dir.file("a.json", written.dump());
  EXPECT_EQ(read_sealed_json(path, kKeys).at("name").string(), "ü");
  nlohmann::json edited = written;
  edited["losses"][1] = 2.5;
  dir.file("a.json", edited.dump());
  expect_refusal([&] { read_sealed_json(path, kKeys); },
                 {path, "edited by hand", "delete its key \"crc32\""});
  // As it says.
  edited.erase("crc32");
  dir.file("a.json", edited.dump());
  EXPECT_EQ(read_sealed_json(path, kKeys).at("losses").numbers()[1], 2.5);
  edited["crc33"] = "00000000";
  dir.file("a.json", edited.dump());
  expect_refusal([&] { read_sealed_json(path, kKeys); }, {path, "damaged", "\"crc33\""});
  dir.file("a.json", written.dump().substr(0, 20));
  expect_refusal([&] { read_sealed_json(path, kKeys); }, {path, "is damaged"});
}

// Any one bit: refused, or nothing that counts has changed.
TEST(Seal, NoFlippedBitOfJsonPasses) {
  const TempDir dir;
  const std::string path = dir.file("a.json");
  write_sealed_json(path, {{"name", "x1"}, {"losses", {0.25, 17.0, -3e-9}}});
  const std::string good = slurp(path);
  const auto values = [&] { return read_sealed_json(path, kKeys).raw(); };
  const nlohmann::json all = values();
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    dir.file("a.json", bad);
    try {
      EXPECT_EQ(values(), all) << "bit " << bit;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(6 * good.size()));
}

TEST(Seal, TomlIsSealedInItsFirstLine) {
  const std::string text = "[train]\nsteps = 12\n";
  const std::string file = sealed_toml(text);
  const auto seal = [](const std::string& bytes) {
    return seal_of_toml(bytes, TomlDocument::parse(bytes, "r.toml").text());
  };
  EXPECT_TRUE(file.starts_with("# heddle wrote this, crc32 " + crc32_of(text)));
  EXPECT_EQ(seal(file), Seal::whole);
  EXPECT_EQ(without_seal(file), text);
  EXPECT_EQ(seal(text), Seal::none);
  EXPECT_EQ(seal("# my recipe\n" + text), Seal::none);
  EXPECT_EQ(without_seal("# my recipe\n" + text), "# my recipe\n" + text);
  EXPECT_EQ(seal(file + "# a remark\n\n"), Seal::whole);  // nothing of it counts
  EXPECT_EQ(seal(file.substr(0, file.size() - 12)), Seal::broken);
  std::string edited = file;
  edited.replace(edited.find("12\n"), 2, "13");
  EXPECT_EQ(seal(edited), Seal::broken);
  for (std::size_t bit = 0; bit < 8 * file.find('\n'); ++bit) {
    std::string bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    try {
      EXPECT_EQ(seal(bad), Seal::broken) << "bit " << bit;
    } catch (const Error&) {
    }
  }
}

// Whatever it says: it has a meaning of its own, and is no comment that something has happened to.
TEST(Seal, ALineThatIsNoCommentIsNone) {
  const std::string text = "\"heddle wrote this, crc32 \" = 1\n";
  EXPECT_EQ(seal_of_toml(text, TomlDocument::parse(text, "r.toml").text()), Seal::none);
  EXPECT_FALSE(has_toml_seal(text));
  EXPECT_TRUE(has_toml_seal("# heddle wrote this, crc23 1\n"));
}

std::string own_file(const TempDir& dir) {
  const std::string path = dir.file("own.safetensors");
  write_safetensors(path, {{"a", Tensor::full({2, 3}, 1.0)}, {"b", Tensor::full({2, 3}, 2.0)}},
                    {{"format", "heddle"}, {"heddle.crc32", "12345678"}});
  return path;
}

TEST(Seal, NoFlippedBitOfASafetensorsHeaderPasses) {
  const TempDir dir;
  const std::string good = slurp(own_file(dir));
  EXPECT_TRUE(SafetensorsFile(dir.file("own.safetensors")).sealed());
  MemoryFile memory;
  const std::size_t data = 2 * 6 * sizeof(float);
  for (std::size_t bit = 0; bit < 8 * (good.size() - data); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const std::string path = memory.hold(bad);
    EXPECT_NE(refusal([&] { SafetensorsFile{path}; }), "nothing was thrown") << "bit " << bit;
  }
}

TEST(Seal, SwappedPlacesOfTensorsAreNoticed) {
  const TempDir dir;
  std::string bytes = slurp(own_file(dir));
  const std::size_t first = bytes.find("[0,24]"), second = bytes.find("[24,48]");
  ASSERT_NE(second, std::string::npos);
  bytes.replace(second, 7, "[0,24] ").replace(first, 6, "[24,48]");
  bytes.erase(bytes.find("[0,24] ") + 6, 1);
  dir.file("own.safetensors", bytes);
  expect_refusal([&] { SafetensorsFile(dir.file("own.safetensors")); },
                 {"own.safetensors", "header is damaged"});
}

// Others write what they like.
TEST(Seal, FilesOfOthersHaveNone) {
  const TempDir dir;
  write_safetensors(dir.file("a"), {{"a", Tensor::zeros({1})}}, {{"format", "pt"}, {"x", "y"}});
  EXPECT_FALSE(SafetensorsFile(dir.file("a")).sealed());
}

}  // namespace
}  // namespace heddle::io
