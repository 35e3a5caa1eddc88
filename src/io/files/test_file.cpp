#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>

#include "io/errors.h"
#include "io/files/file.h"
#include "io/files/memory_limit.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "io/utf8.h"

namespace heddle::io {
namespace {

// A disk that is full after `bytes`: no file of this process may grow beyond.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

TEST(ReadFile, ReadsAllBytesUpToTheLimit) {
  const TempDir dir;
  std::string bytes;
  for (int i = 0; i < 200000; ++i) bytes += static_cast<char>(i % 251);
  const std::string path = dir.file("data", bytes);
  EXPECT_EQ(read_file(path, bytes.size()), bytes);
  EXPECT_EQ(read_file(path, std::string::npos), bytes);
  EXPECT_EQ(read_file(dir.file("empty", ""), 0), "");
  expect_refusal([&] { read_file(path, bytes.size() - 1); },
                 {path, "at most 199999 bytes", "got 200000 bytes"});
}

// A pipe would keep a reader waiting for ever, a device would fill the memory.
TEST(ReadFile, RefusesAtOnceWhatIsNoRegularFile) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe"), socket = dir.file("socket");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket.size(), sizeof address.sun_path);
  socket.copy(address.sun_path, socket.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {pipe, "is a pipe"},
      {socket, "is a socket"},
      {"/dev/zero", "is a device"},
      {dir.path(), "is a directory"},
  };
  for (const auto& [path, kind] : cases) {
    expect_refusal([&] { read_file(path, 100); }, {path, kind, "not a regular file"});
    expect_refusal([&] { AppendFile{path}; }, {path, kind});
    expect_refusal([&] { SafetensorsFile{path}; }, {path, kind});
  }
  // Through a link to it as well, and while a process writes to it.
  ASSERT_EQ(::symlink("pipe", dir.file("link").c_str()), 0);
  const Descriptor writer(::open(pipe.c_str(), O_RDWR | O_NONBLOCK));
  ASSERT_EQ(::write(writer.get(), "text", 4), 4);
  expect_refusal([&] { read_file(dir.file("link"), 100); }, {dir.file("link"), "is a pipe"});
}

TEST(ReadFile, TakesAQuarterOfTheMemoryAtMost) {
  const TempDir dir;
  const std::string path = dir.file("data", std::string(1001, 'x'));
  {
    const PretendMemory memory(4003);  // a quarter is 1000
    expect_refusal([&] { read_file(path, 5000); },
                   {path, "at most 1000 bytes, a quarter of the memory", "1001 bytes"});
  }
  const PretendMemory memory(4004);
  EXPECT_EQ(read_file(path, 5000).size(), 1001u);
  expect_refusal([&] { read_file(path, 999); }, {"at most 999 bytes"});
}

TEST(ReadFile, NamesWhatIsMissing) {
  const TempDir dir;
  expect_refusal([&] { read_file(dir.file("nothing"), 10); },
                 {dir.file("nothing"), "No such file or directory"});
  expect_refusal([&] { read_file(dir.path(), 10); }, {dir.path(), "directory"});
  expect_refusal([] { read_file("", 10); }, {"not a path"});
  expect_refusal([] { read_file(std::string("/dev/null\0x", 11), 10); }, {"not a path"});
}

TEST(WriteFileAtomic, ReplacesAndLeavesNothingElse) {
  const TempDir dir;
  const std::string path = dir.file("out");
  write_file_atomic(path, "first");
  EXPECT_EQ(slurp(path), "first");
  write_file_atomic(path, std::string("sec\0nd", 6));
  EXPECT_EQ(slurp(path), std::string("sec\0nd", 6));
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(WriteFileAtomic, KeepsPermissionsAndLinks) {
  const TempDir dir;
  const std::string path = dir.file("out", "old"), link = dir.file("link");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(::symlink("out", link.c_str()), 0);
  write_file_atomic(link, "new");
  EXPECT_EQ(slurp(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(WriteFileAtomic, FullDiskLeavesTheOldFileAndNoTemporary) {
  const TempDir dir;
  const std::string path = dir.file("out", "old");
  {
    const FullDisk full(1000);
    expect_refusal([&] { write_file_atomic(path, std::string(5000, 'x')); },
                   {path, "cannot write", "File too large"});
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(WriteFileAtomic, RefusesWhatItCannotReplace) {
  const TempDir dir;
  expect_refusal([&] { write_file_atomic(dir.path(), "x"); }, {dir.path(), "a directory"});
  // A rename would have put a plain file in the place of the device.
  expect_refusal([] { write_file_atomic("/dev/full", "x"); }, {"/dev/full", "device"});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  expect_refusal([&] { write_file_atomic(dir.file("no/where"), "x"); },
                 {dir.file("no/where"), "its folder is not there", "mkdir -p"});
  expect_refusal([&] { write_file_atomic(dir.file("a", "") + "/b", "x"); }, {"Not a directory"});
  expect_refusal([] { write_file_atomic("/proc/heddle", "x"); }, {"/proc/heddle", "temporary"});
  expect_refusal([] { write_file_atomic("", "x"); }, {"not a path"});
}

TEST(WriteFileAtomic, NamesAnUnwritableDirectory) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is unwritable for the superuser";
  const TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0500), 0);
  expect_refusal([&] { write_file_atomic(dir.file("x"), "x"); }, {dir.path(), "Permission denied"});
}

TEST(AtomicFile, WithoutCommitNothingHappened) {
  const TempDir dir;
  const std::string path = dir.file("out", "old");
  {
    AtomicFile file(path);
    file.write("half of ");
    EXPECT_EQ(file.bytes_written(), 8u);
    EXPECT_EQ(dir.entries(), 2u);
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(AtomicFile, TwoWritersDoNotMeet) {
  const TempDir dir;
  const std::string path = dir.file("out");
  AtomicFile one(path), two(path);
  one.write("one");
  two.write("two");
  two.commit();
  EXPECT_EQ(slurp(path), "two");
  one.commit();
  EXPECT_EQ(slurp(path), "one");
  expect_refusal([&] { one.write("more"); }, {path, "after commit"});
  expect_refusal([&] { one.commit(); }, {path, "twice"});
}

TEST(AppendFile, GoesOnWhereTheLogEndedAndCanBeCut) {
  const TempDir dir;
  const std::string path = dir.file("log.jsonl");
  {
    AppendFile log(path);
    log.append_line("one");
    log.flush();
    EXPECT_EQ(log.size(), 4u);
  }
  AppendFile log(path);
  EXPECT_EQ(log.size(), 4u);
  log.append_line("two");
  log.append_line("three");
  log.truncate(8);
  log.append_line("3");
  EXPECT_EQ(slurp(path), "one\ntwo\n3\n");
  expect_refusal([&] { log.truncate(11); }, {path, "at least 11 bytes", "got 10"});
  expect_refusal([&] { log.append_line("a\nb"); }, {path, "newline"});
}

TEST(AppendFile, DoesNotGlueALineToATornOne) {
  const TempDir dir;
  const std::string path = dir.file("log", "one\ntw");
  AppendFile(path).append_line("three");
  EXPECT_EQ(slurp(path), "one\ntw\nthree\n");
  AppendFile log(path);
  log.truncate(5);
  log.append_line("four");
  EXPECT_EQ(slurp(path), "one\nt\nfour\n");
}

TEST(AppendFile, FullDiskTakesTheLineBack) {
  const TempDir dir;
  const std::string path = dir.file("log");
  AppendFile log(path);
  log.append_line("whole");
  {
    const FullDisk full(20);
    expect_refusal([&] { log.append_line(std::string(100, 'x')); }, {path, "cannot write"});
  }
  EXPECT_EQ(slurp(path), "whole\n");
  log.append_line("next");
  EXPECT_EQ(slurp(path), "whole\nnext\n");
}

TEST(Directories, AreMadeWithTheirParents) {
  const TempDir dir;
  make_directories(dir.file("a/b/c"));
  make_directories(dir.file("a/b/c"));
  EXPECT_TRUE(directory_exists(dir.file("a/b/c")));
  EXPECT_FALSE(file_exists(dir.file("a/b")));
  const std::string file = dir.file("f", "x");
  EXPECT_TRUE(file_exists(file));
  EXPECT_FALSE(directory_exists(file));
  expect_refusal([&] { make_directories(file); }, {file});
  expect_refusal([&] { make_directories(file + "/g"); }, {file, "Not a directory"});
}

TEST(Shown, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(shown("plain"), "\"plain\"");
  EXPECT_EQ(shown("a\x1b[31m\n\"\\"), R"("a\x1b[31m\x0a\"\\")");
  EXPECT_EQ(shown("größe \xff"), R"("größe \xff")");
  EXPECT_EQ(shown(std::string(200, 'x'), 4), "\"xxxx...\"");
}

TEST(NearestName, FindsSlipsAndNothingFarOff) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("haeds", "heads"), 1u);  // neighbours swapped
  const std::vector<std::string> names = {"heads", "kv_heads", "look_back", "layers"};
  EXPECT_EQ(nearest_name("haeds", names), "heads");
  EXPECT_EQ(nearest_name("kvheads", names), "kv_heads");
  EXPECT_EQ(nearest_name("lookback", names), "look_back");
  EXPECT_EQ(nearest_name("colour", names), "");
  EXPECT_EQ(nearest_name("", names), "");
}

TEST(Utf8, KnowsWellFormedSequences) {
  EXPECT_EQ(first_invalid_utf8("plain text, long enough for words"), std::string_view::npos);
  EXPECT_EQ(first_invalid_utf8("żółw 龍 \U0001F980 \xf4\x8f\xbf\xbf"), std::string_view::npos);
  const char* bad[] = {"\x80",
                       "\xc0\x80",
                       "\xc1\xbf",
                       "\xc3",
                       "\xe0\x9f\xbf",
                       "\xed\xa0\x80",
                       "\xe2\x82",
                       "\xf0\x8f\xbf\xbf",
                       "\xf4\x90\x80\x80",
                       "\xf5\x80\x80\x80",
                       "\xff",
                       "\xe2\x28\xa1"};
  for (const char* bytes : bad)
    EXPECT_EQ(first_invalid_utf8("0123456789" + std::string(bytes)), 10u) << shown(bytes);
}

TEST(LineColumn, CountsFromOne) {
  EXPECT_EQ(line_column("ab\ncd", 0).line, 1u);
  EXPECT_EQ(line_column("ab\ncd", 4).line, 2u);
  EXPECT_EQ(line_column("ab\ncd", 4).column, 2u);
  EXPECT_EQ(line_column("ab\ncd", 99).column, 3u);
}

}  // namespace
}  // namespace heddle::io
