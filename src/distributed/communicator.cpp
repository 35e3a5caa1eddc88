#include "distributed/communicator.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <thread>

namespace heddle::distributed {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// What one rank alone does (reading data, writing a checkpoint) may keep the others waiting for
// longer than an answer does.
constexpr int kLongWork = 30;

std::string link_of(const char* path) {
  std::array<char, 256> text{};
  const ssize_t length = readlink(path, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

std::string line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Peer this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"?"};
  const std::string space = link_of("/proc/self/ns/pid"),
                    boot = line_of("/proc/sys/kernel/random/boot_id");
  return {host.data(), getpid(), space.empty() || boot.empty() ? "" : boot + " " + space};
}

// Gone, or dead and not yet buried.
bool is_gone(const Peer& peer) {
  std::ifstream file("/proc/" + std::to_string(peer.process) + "/stat");
  if (!file) return true;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X');
}

std::string to_text(const Peer& peer) {
  return std::to_string(peer.process) + "\n" + peer.host + "\n" + peer.processes;
}

Peer peer_of(const std::string& text) {
  Peer peer;
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  std::from_chars(text.data(), text.data() + first, peer.process);
  peer.host = text.substr(first + 1, second - first - 1);
  peer.processes = text.substr(second + 1);
  return peer;
}

double seconds_since(Clock::time_point moment) {
  return std::chrono::duration<double>(Clock::now() - moment).count();
}

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::string Peer::told(int rank) const {
  std::string text = "rank " + std::to_string(rank);
  if (!host.empty()) text += " (process " + std::to_string(process) + " on " + host + ")";
  return text;
}

PeerFailed::PeerFailed(ErrorCode code, int rank, const std::string& what)
    : Error(code, "rank " + std::to_string(rank), what, "", "") {}

Communicator::Communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options)
    : transport_(std::move(transport)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      timeout_(options.timeout),
      stage_("the start") {
  peers_.resize(static_cast<std::size_t>(size_));
  std::vector<Peer> met;
  for (const std::string& text : all_gather_text(to_text(this_process()), "meeting"))
    met.push_back(peer_of(text));
  peers_ = std::move(met);
}

Communicator Communicator::planned(int rank, int size) {
  Communicator group;
  group.rank_ = rank;
  group.size_ = size;
  group.peers_.resize(static_cast<std::size_t>(size));
  return group;
}

void Communicator::give_up(const std::vector<int>& ranks, std::string_view what,
                           const std::string& why) const {
  std::string names;
  for (const int rank : ranks) {
    if (!names.empty()) names += ", ";
    names += peer(rank).told(rank);
  }
  throw RankLost(
      ErrorCode::failed, "rank " + std::to_string(rank_) + ", " + stage_,
      names + " " + why + " (" + std::string(what) + ")",
      "an answer; what it said itself, and the log of its machine, may tell why. The run "
      "goes on from its last checkpoint with --resume",
      "");
}

void Communicator::wait(std::string_view what, milliseconds timeout) {
  const Clock::time_point began = Clock::now();
  Clock::time_point looked = began;
  int turns = 0;
  while (!transport_->test()) {
    // A partner that computes as fast is there at once. With more ranks than cores, spinning would
    // keep it from coming.
    if (++turns < 64) continue;
    if (turns < 4096)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    const Clock::time_point now = Clock::now();
    if (now - looked < milliseconds(20)) continue;
    looked = now;
    const std::vector<int>& awaited = transport_->awaited();
    std::vector<int> gone;
    const Peer& self = peer(rank_);
    for (const int rank : awaited)
      if (const Peer& p = peer(rank); !self.processes.empty() && p.processes == self.processes &&
                                      p.process != self.process && is_gone(p))
        gone.push_back(rank);
    // What it sent before it ended may still be on its way.
    if (!gone.empty() && !transport_->test()) give_up(gone, what, "is gone");
    if (now - began > timeout)
      give_up(
          awaited, what,
          "did not answer within " +
              std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) +
              " s");
  }
}

void Communicator::exchange(std::span<const Bytes> sends, std::span<const MutableBytes> receives,
                            std::string_view what, milliseconds timeout) {
  if (!transport_) return;  // planned, or alone
  begin(sends, receives);
  end(what, timeout);
}

void Communicator::begin(std::span<const Bytes> sends, std::span<const MutableBytes> receives) {
  if (!background_.empty())
    fail(ErrorCode::failed, "communicator", "an exchange in the background",
         "its end before others", background_);
  began_ = Clock::now();
  for (std::size_t i = 0; i < sends.size(); ++i)
    if (static_cast<int>(i) != rank_) traffic_.sent += static_cast<std::int64_t>(sends[i].size());
  transport_->begin(sends, receives);
  traffic_.waited += seconds_since(began_);
}

void Communicator::end(std::string_view what, milliseconds timeout) {
  const Clock::time_point here = Clock::now();
  wait(what, timeout);
  traffic_.waited += seconds_since(here);
  traffic_.under_way += seconds_since(began_);
}

void Communicator::begin_all_to_all(std::span<const Bytes> sends,
                                    std::span<const MutableBytes> receives, std::string what) {
  keep_own(sends, receives);
  if (!transport_) return;
  begin(sends, receives);
  background_ = std::move(what);
}

void Communicator::go_on() {
  if (background_.empty()) return;
  const Clock::time_point here = Clock::now();
  if (transport_->test()) {
    traffic_.under_way += seconds_since(began_);
    background_.clear();
  }
  traffic_.waited += seconds_since(here);
}

void Communicator::finish() {
  if (background_.empty()) return;
  end(std::exchange(background_, {}), timeout_);
}

// What a rank has for itself, after a look at the buffers.
void Communicator::keep_own(std::span<const Bytes> sends,
                            std::span<const MutableBytes> receives) const {
  const auto own = static_cast<std::size_t>(rank_);
  if (sends.size() != static_cast<std::size_t>(size_) || receives.size() != sends.size() ||
      sends[own].size() != receives[own].size())
    fail(ErrorCode::invalid_argument, "all_to_all", "buffers",
         "one for each of " + std::to_string(size_) + " ranks, and its own of one size",
         std::to_string(sends.size()) + " and " + std::to_string(receives.size()));
  if (!sends[own].empty()) std::memcpy(receives[own].data(), sends[own].data(), sends[own].size());
}

void Communicator::all_to_all(std::span<const Bytes> sends, std::span<const MutableBytes> receives,
                              std::string_view what) {
  keep_own(sends, receives);
  exchange(sends, receives, what, timeout_);
}

void Communicator::all_gather(Bytes mine, MutableBytes all, std::string_view what) {
  const auto ranks = static_cast<std::size_t>(size_);
  if (all.size() != ranks * mine.size())
    fail(ErrorCode::invalid_argument, "all_gather", "size of the result",
         std::to_string(ranks * mine.size()), std::to_string(all.size()));
  const std::vector<Bytes> sends(ranks, mine);
  std::vector<MutableBytes> receives;
  receives.reserve(ranks);
  for (std::size_t i = 0; i < ranks; ++i)
    receives.push_back(all.subspan(i * mine.size(), mine.size()));
  all_to_all(sends, receives, what);
}

void Communicator::broadcast(MutableBytes bytes, int root, std::string_view what) {
  std::vector<Bytes> sends(static_cast<std::size_t>(size_));
  std::vector<MutableBytes> receives(static_cast<std::size_t>(size_));
  if (rank_ == root) {
    sends.assign(static_cast<std::size_t>(size_), bytes);
    sends[static_cast<std::size_t>(root)] = {};
  } else {
    receives[static_cast<std::size_t>(root)] = bytes;
  }
  exchange(sends, receives, what, timeout_);
}

void Communicator::all_reduce(std::span<double> sum, std::string_view what) {
  const auto all = all_gather_values(std::span<const double>(sum), what);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = all[i];
    for (std::size_t rank = 1; rank < static_cast<std::size_t>(size_); ++rank)
      sum[i] += all[rank * sum.size() + i];
  }
}

void Communicator::reduce_scatter(std::span<const double> mine, std::span<const std::size_t> begin,
                                  std::span<double> slice, std::string_view what) {
  const auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  if (begin.size() != ranks + 1 || begin.back() > mine.size() ||
      slice.size() != begin[own + 1] - begin[own])
    fail(ErrorCode::invalid_argument, "reduce_scatter", "slices",
         "bounds of " + std::to_string(ranks) + " slices of the numbers, and room for its own",
         std::to_string(begin.size()) + " bounds, room for " + std::to_string(slice.size()));
  std::vector<double> from(ranks * slice.size());
  std::vector<Bytes> sends;
  std::vector<MutableBytes> receives;
  for (std::size_t i = 0; i < ranks; ++i) {
    sends.push_back(std::as_bytes(mine.subspan(begin[i], begin[i + 1] - begin[i])));
    receives.push_back(
        std::as_writable_bytes(std::span(from).subspan(i * slice.size(), slice.size())));
  }
  all_to_all(sends, receives, what);
  for (std::size_t i = 0; i < slice.size(); ++i) {
    slice[i] = from[i];
    for (std::size_t rank = 1; rank < ranks; ++rank) slice[i] += from[rank * slice.size() + i];
  }
}

void Communicator::barrier(std::string_view what) {
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<std::size_t>(size_));
  all_gather({&mine, 1}, all, what);
}

std::vector<std::string> Communicator::all_gather_text(const std::string& mine,
                                                       std::string_view what) {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::uint64_t length = mine.size();
  const auto lengths = all_gather_values(std::span(&length, 1), what);
  std::vector<std::string> all(ranks);
  std::vector<MutableBytes> receives;
  for (std::size_t i = 0; i < ranks; ++i) {
    all[i].resize(lengths[i]);
    receives.push_back(std::as_writable_bytes(std::span(all[i])));
  }
  const std::vector<Bytes> sends(ranks, bytes_of(mine));
  all_to_all(sends, receives, what);
  return all;
}

std::string Communicator::broadcast_text(const std::string& text, int root, std::string_view what) {
  std::string all = rank_ == root ? text : "";
  std::uint64_t length = all.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root, what);
  all.resize(length);
  broadcast(std::as_writable_bytes(std::span(all)), root, what);
  return all;
}

void Communicator::together(std::string_view what, const std::function<void()>& body) {
  if (alone() || !transport_) return body();
  std::exception_ptr own;
  std::string said;  // the code, and what went wrong; empty: nothing
  try {
    body();
  } catch (const PeerFailed&) {
    throw;  // all know
  } catch (const Error& e) {
    own = std::current_exception();
    said = std::string(1, static_cast<char>('0' + static_cast<int>(e.code()))) + e.what();
  } catch (const std::exception& e) {
    // As an Error, so that whoever ends the run leaves in order.
    const bool memory = dynamic_cast<const std::bad_alloc*>(&e) != nullptr;
    const ErrorCode code = memory ? ErrorCode::out_of_memory : ErrorCode::failed;
    const Error error(code, std::string(what), memory ? "not enough memory" : e.what(), "", "");
    own = std::make_exception_ptr(error);
    said = std::string(1, static_cast<char>('0' + static_cast<int>(code))) + error.what();
  }
  const milliseconds usual = timeout_;
  timeout_ *= kLongWork;
  const std::vector<std::string> all = all_gather_text(said, what);
  timeout_ = usual;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    all_know_ = true;
    if (static_cast<int>(i) == rank_) std::rethrow_exception(own);
    throw PeerFailed(static_cast<ErrorCode>(all[i][0] - '0'), static_cast<int>(i),
                     all[i].substr(1));
  }
}

void Communicator::leave() {
  if (transport_) transport_->leave();
  transport_ = nullptr;
}

}  // namespace heddle::distributed
