// The ranks of a run, as one of them sees the others. Every function that talks is called by all
// ranks, in the same order; a group of one talks to nobody and costs nothing.
//
// Nothing here adds numbers but all_reduce(): sums that have to be the same on any number of ranks
// are those of a fixed tree (reduce.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/transport.h"
#include "heddle/error.h"

namespace heddle::distributed {

// Another rank has said already what went wrong there: nobody need say it again.
class PeerFailed : public Error {
 public:
  PeerFailed(ErrorCode code, int rank, const std::string& what);
};

// What a rank tells the others of itself at the start.
struct Peer {
  std::string host;
  std::int64_t process = 0;
  std::string processes;  // names the space of process numbers: the same for ranks that see each
                          // other's processes. Empty: not known

  std::string told(int rank) const;  // "rank 1 (process 4711 on node3)"
};

struct CommunicatorOptions {
  std::chrono::milliseconds timeout{60'000};
};

// What it took to talk to the others, as one rank sees it.
struct Traffic {
  std::int64_t sent = 0;  // bytes
  double waited = 0;      // seconds in which this rank did nothing else
  double under_way = 0;   // seconds from the beginnings of exchanges to their ends

  Traffic& operator+=(const Traffic& more) {
    sent += more.sent;
    waited += more.waited;
    under_way += more.under_way;
    return *this;
  }
  // The share of the last in which this rank computed.
  double hidden() const { return under_way > waited ? 1 - waited / under_way : 0; }
};

class Communicator {
 public:
  Communicator() = default;  // a group of one
  // Meets the others.
  explicit Communicator(std::unique_ptr<Transport> transport,
                        const CommunicatorOptions& options = {});
  // Rank `rank` of `size`, and no others: tells sizes, and whatever talks does nothing. For plans.
  static Communicator planned(int rank, int size);

  Communicator(Communicator&&) = default;
  Communicator& operator=(Communicator&&) = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool is_first() const { return rank_ == 0; }
  std::string engine() const { return transport_ ? transport_->engine() : ""; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  // A rank that has not answered for so long is given up. Before, where its process is seen to be
  // gone.
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  // What the ranks are doing, for errors: "step 12".
  void set_stage(std::string stage) { stage_ = std::move(stage); }

  // Buffer i of `sends` goes to rank i, buffer i of `receives` comes from it. Sizes must agree.
  void all_to_all(std::span<const Bytes> sends, std::span<const MutableBytes> receives,
                  std::string_view what);
  // The same in the background: goes on whenever it is asked to, and is done after finish(). Until
  // then the buffers stay where they are, and nothing else is said.
  void begin_all_to_all(std::span<const Bytes> sends, std::span<const MutableBytes> receives,
                        std::string what);
  void go_on();
  void finish();

  // Since it was last asked for.
  Traffic take_traffic() { return std::exchange(traffic_, {}); }

  // `all` has the buffers of all ranks one after the other, each as large as `mine`.
  void all_gather(Bytes mine, MutableBytes all, std::string_view what);
  void broadcast(MutableBytes bytes, int root, std::string_view what);
  // sum[i] = the sum over all ranks of theirs, on every rank, in the order of the ranks.
  void all_reduce(std::span<double> sum, std::string_view what);
  // The same of a slice: rank r gets numbers begin[r] to begin[r + 1] of the sum in the order of
  // the ranks.
  void reduce_scatter(std::span<const double> mine, std::span<const std::size_t> begin,
                      std::span<double> slice, std::string_view what);
  void barrier(std::string_view what);

  std::vector<std::string> all_gather_text(const std::string& mine, std::string_view what);
  std::string broadcast_text(const std::string& text, int root, std::string_view what);
  template <class T>
  std::vector<T> all_gather_values(std::span<const T> mine, std::string_view what) {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(size_));
    all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)), what);
    return all;
  }

  // Calls body() on this rank, while the others do theirs, which may take many times as long as an
  // answer otherwise. Where it fails on any, it fails on all: on the first of those with its own
  // Error, elsewhere with PeerFailed.
  void together(std::string_view what, const std::function<void()>& body);

  // Whether all ranks know that one of them has failed.
  bool all_know() const { return all_know_; }

  // After the last exchange of a run that ends on all ranks, well or not.
  void leave();

 private:
  void exchange(std::span<const Bytes> sends, std::span<const MutableBytes> receives,
                std::string_view what, std::chrono::milliseconds timeout);
  void keep_own(std::span<const Bytes> sends, std::span<const MutableBytes> receives) const;
  void begin(std::span<const Bytes> sends, std::span<const MutableBytes> receives);
  void end(std::string_view what, std::chrono::milliseconds timeout);
  void wait(std::string_view what, std::chrono::milliseconds timeout);
  [[noreturn]] void give_up(const std::vector<int>& ranks, std::string_view what,
                            const std::string& why) const;

  std::unique_ptr<Transport> transport_;
  int rank_ = 0, size_ = 1;
  std::chrono::milliseconds timeout_{60'000};
  std::string stage_;
  std::vector<Peer> peers_;
  bool all_know_ = false;
  // Of the exchange that is under way.
  std::string background_;  // what it is for, where it is one in the background
  std::chrono::steady_clock::time_point began_;
  Traffic traffic_;
};

}  // namespace heddle::distributed
