// Shared by the tests of this room: a temporary folder, messages of errors, and mutations of valid
// files, which a parser must either read or refuse with an Error.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle::io {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string file(const std::string& name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  std::size_t entries() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::string path_;
};

// A file in memory, for thousands of rounds: the disk would take milliseconds for each.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("heddle-test", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no file in memory");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Replaces what was in it; returns its path.
  std::string hold(const std::string& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, bytes.data(), bytes.size(), 0) != size)
      throw std::runtime_error("cannot write to a file in memory");
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

inline std::string slurp(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// The message of the Error that `body` throws, which must be one about files.
inline std::string refusal(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

inline void expect_refusal(const auto& body, std::initializer_list<std::string_view> parts) {
  const std::string message = refusal(body);
  for (const std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
}

inline std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One random change: flipped bits, replaced, removed, repeated or inserted bytes, a cut end.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(7)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(below(256));
        break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(at, bytes.substr(at, length)); break;
      case 5: bytes.insert(at, length, static_cast<char>(below(256))); break;
      default:  // extreme numbers, little and big
        for (std::size_t j = at; j < at + length; ++j)
          bytes[j] = static_cast<char>(below(2) == 0 ? 0xff : 0);
    }
  }
  return bytes;
}

// `parse` must return or throw Error for each of `rounds` mutations. Says how many were refused:
// a parser that takes everything is no better than one that crashes.
inline int survive_mutations(const std::string& valid, int rounds,
                             const std::function<void(const std::string&)>& parse) {
  std::mt19937 random(20240607);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = mutated(valid, random);
    try {
      parse(bytes);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
      ++refused;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "round " << round << " threw something else: " << e.what();
      return refused;
    }
  }
  return refused;
}

}  // namespace heddle::io
