// System calls that are interrupted, and that move less than they were asked to.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "io/files/descriptor.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

// While it lives a signal comes every millisecond, and system calls are not taken up again by
// themselves. Threads that are started meanwhile must keep it out.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &old_);
    const itimerval every{{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &old_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  struct sigaction old_ = {};
};

void keep_signals_out() {
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read, write;
};

std::string numbered(std::size_t bytes) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

TEST(Descriptor, ReadingGoesOnAfterASignal) {
  Pipe pipe;
  const std::string text = numbered(5000);
  std::thread writer([&] {
    keep_signals_out();
    for (std::size_t at = 0; at < text.size(); at += 500) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      write_all(pipe.write, "pipe", text.data() + at, 500);
    }
    pipe.write.close();
  });
  std::string found(6000, '?');
  std::size_t got = 0;
  {
    const Interruptions interruptions;
    EXPECT_NO_THROW(got = read_some(pipe.read, "pipe", found.data(), found.size()));
  }
  writer.join();
  EXPECT_EQ(found.substr(0, got), text);
}

TEST(Descriptor, WritingGoesOnAfterASignal) {
  Pipe pipe;
  const std::string text = numbered(std::size_t{1} << 18);  // four times what a pipe holds
  std::string found;
  std::thread reader([&] {
    keep_signals_out();
    std::array<char, 16384> part{};
    for (ssize_t got = 1; got > 0;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      got = ::read(pipe.read.get(), part.data(), part.size());
      if (got > 0) found.append(part.data(), static_cast<std::size_t>(got));
    }
  });
  {
    const Interruptions interruptions;
    EXPECT_NO_THROW(write_all(pipe.write, "pipe", text.data(), text.size()));
  }
  pipe.write.close();
  reader.join();
  EXPECT_EQ(found, text);
}

TEST(Descriptor, ReadsFromAnOffsetToTheEnd) {
  const TempDir dir;
  const Descriptor file = open_file(dir.file("f", "0123456789"), 0);
  std::string found(8, '?');
  EXPECT_EQ(read_at(file, "f", found.data(), 3, 4), 3u);
  EXPECT_EQ(found, "456?????");
  EXPECT_EQ(read_at(file, "f", found.data(), 8, 7), 3u);  // it ends there
  EXPECT_EQ(found, "789?????");
  EXPECT_EQ(read_at(file, "f", found.data(), 8, 10), 0u);
}

TEST(Descriptor, FailuresSayWhatWasDone) {
  const TempDir dir;
  const Descriptor folder = open_file(dir.path(), 0);
  char byte = 0;
  expect_refusal([&] { read_some(folder, "some/folder", &byte, 1); },
                 {"some/folder", "cannot read", "directory"});
  expect_refusal([&] { read_at(folder, "some/folder", &byte, 1, 77); },
                 {"some/folder", "cannot read at offset 77"});
  const Descriptor read_only = open_file(dir.file("f", "x"), 0);
  expect_refusal([&] { write_all(read_only, "f", &byte, 1); }, {"f", "cannot write"});
  EXPECT_EQ(Descriptor().close(), 0);
  EXPECT_EQ(Descriptor(1 << 20).close(), EBADF);
}

}  // namespace
}  // namespace heddle::io
