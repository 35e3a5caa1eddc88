#include "compare/team.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/json/json.h"

namespace heddle::compare {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLook{50};            // between two looks at what others did
constexpr milliseconds kLongestEnd{60'000};  // of a rank that was asked to end
constexpr const char* kOccupied = "another process is at this comparison";

std::string host_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') return "?";
  return host.data();
}

// Nothing where another process has it. Who only looks (is_alive()) has a lock for an instant, and
// so a few tries are made.
std::optional<io::Descriptor> try_lock(const std::string& path, int kind, int tries = 10) {
  io::Descriptor lock = io::open_regular(path, O_RDWR | O_CREAT);
  for (int i = 0; i < tries; ++i) {
    if (::flock(lock.get(), kind | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) io::fail_system(path, "cannot lock", errno);
    if (i + 1 < tries) std::this_thread::sleep_for(milliseconds(5));
  }
  return std::nullopt;
}

io::Descriptor wait_for_lock(const std::string& path) {
  io::Descriptor lock = io::open_regular(path, O_RDWR | O_CREAT);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) io::fail_system(path, "cannot lock", errno);
  return lock;
}

nlohmann::json read_seat(const std::string& path) { return io::Json::read(path).raw(); }

std::string told(int rank, const nlohmann::json& seat) {
  return "rank " + std::to_string(rank) + " (process " + seat.value("process", std::string("?")) +
         " on " + seat.value("host", std::string("?")) + ")";
}

}  // namespace

io::Descriptor share_directory(const std::string& directory) {
  auto lock = try_lock(directory + "/lock", LOCK_SH);
  if (!lock) io::fail_io(directory, kOccupied);
  return std::move(*lock);
}

Team::Team(std::string directory, const Seat& seat, Facts facts,
           const std::function<void(bool is_first)>& settle)
    : directory_(std::move(directory) + "/ranks"),
      seat_(seat),
      facts_(std::move(facts)),
      host_(host_name()) {
  io::make_directories(directory_);
  const io::Descriptor door = wait_for_lock(path("lock"));
  bool empty = true;
  for (int rank = 0; rank < seat_.ranks; ++rank)
    if (rank != seat_.rank && is_alive(rank)) {
      empty = false;
      check_launch(rank);
    }
  auto own = try_lock(seat_of(seat_.rank), LOCK_EX);
  if (!own) io::fail_io(directory_, kOccupied + (", rank " + std::to_string(seat_.rank)));
  own_ = std::move(*own);
  if (empty) clear();
  settle(empty);
  write_seat();
}

// Ranks of a launch of another size are of another launch.
void Team::check_launch(int rank) const {
  const nlohmann::json other = read_seat(seat_of(rank) + ".json");
  if (other.value("ranks", 0) != seat_.ranks)
    fail(ErrorCode::io, directory_, kOccupied,
         "the " + std::to_string(seat_.ranks) + " ranks of this launch",
         std::to_string(other.value("ranks", 0)) + " of another, with " + told(rank, other));
}

void Team::write_seat() const {
  nlohmann::json facts = nlohmann::json::array();
  for (const auto& [name, value] : facts_) facts.push_back({name, value});
  io::write_json(seat_of(seat_.rank) + ".json", {{"rank", seat_.rank},
                                                 {"ranks", seat_.ranks},
                                                 {"host", host_},
                                                 {"process", std::to_string(getpid())},
                                                 {"facts", facts}});
}

bool Team::is_alive(int rank) const {
  if (rank == seat_.rank) return own_.valid();
  const std::string seat = seat_of(rank);
  if (!io::file_exists(seat)) return false;
  const io::Descriptor lock = io::open_regular(seat, O_RDONLY);
  return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Locks stay as files: somebody may have one open already.
void Team::clear() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_lock = name.find('.') == std::string::npos && name != "stop" && name != "told";
    if (!is_lock) std::filesystem::remove(entry.path(), error);
  }
}

int Team::meet() const {
  const Clock::time_point began = Clock::now();
  while (true) {
    int there = 0;
    for (int rank = 0; rank < seat_.ranks; ++rank)
      if (io::file_exists(seat_of(rank) + ".json")) ++there;
    if (there == seat_.ranks || Clock::now() - began >= seat_.patience) return there;
    std::this_thread::sleep_for(kLook);
  }
}

void Team::check_alike() const {
  std::optional<std::pair<int, nlohmann::json>> lowest;
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    const std::string file = seat_of(rank) + ".json";
    if (!io::file_exists(file)) continue;
    const nlohmann::json seat = read_seat(file);
    if (!lowest) {
      lowest.emplace(rank, seat);
      continue;
    }
    const nlohmann::json &mine = lowest->second.at("facts"), &theirs = seat.at("facts");
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
      if (mine[i] != theirs[i])
        fail(ErrorCode::invalid_argument, told(rank, seat),
             "has another " + theirs[i].at(0).get<std::string>(),
             mine[i].at(1).get<std::string>() + ", as rank " + std::to_string(lowest->first),
             theirs[i].at(1).get<std::string>());
  }
}

std::optional<io::Descriptor> Team::claim(std::size_t run) const {
  return try_lock(path("run-" + std::to_string(run)), LOCK_EX, 1);
}

void Team::set_done(std::size_t run) const {
  io::write_file_atomic(path("run-" + std::to_string(run) + ".done"),
                        "rank " + std::to_string(seat_.rank) + "\n");
}

bool Team::is_done(std::size_t run) const {
  return io::file_exists(path("run-" + std::to_string(run) + ".done"));
}

int Team::stop_signal() const {
  if (!io::file_exists(path("stop"))) return 0;
  const std::string text = io::read_whole(path("stop"), 64);
  int signal = 0;
  std::from_chars(text.data(), text.data() + text.size(), signal);
  return signal;
}

void Team::ask_to_stop(int signal) const {
  if (stop_signal() == 0) io::write_file_atomic(path("stop"), std::to_string(signal) + "\n");
}

bool Team::is_teller(const std::function<bool()>& should_stop) const {
  while (!io::file_exists(path("told"))) {
    bool is_first = true;
    for (int rank = 0; rank < seat_.rank && is_first; ++rank) is_first = !is_alive(rank);
    if (is_first) return !io::file_exists(path("told"));
    if (should_stop && should_stop()) return false;
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

void Team::set_told() const { io::write_file_atomic(path("told"), ""); }

void Team::end_together() const {
  io::write_file_atomic(seat_of(seat_.rank) + ".ended", "");
  const Clock::time_point began = Clock::now();
  for (int rank = 0; rank < seat_.ranks; ++rank)
    while (is_alive(rank) && !io::file_exists(seat_of(rank) + ".ended") &&
           Clock::now() - began < kLongestEnd)
      std::this_thread::sleep_for(kLook);
}

}  // namespace heddle::compare
