// The ranks of a comparison. They meet in its directory and nowhere else: no message passes between
// them. Each run is trained by the rank that has its lock, which the system releases with the
// process, however that ends: so a rank that dies leaves its runs to the others, and a slow one
// holds up nothing but the run it has.
//
//   DIR/ranks/lock          held for the moment in which a rank comes in
//   DIR/ranks/rank-R        held by rank R for its life; rank-R.json says who it is
//   DIR/ranks/run-I         held by the rank that has run I; run-I.done: it is done
//   DIR/ranks/stop          the signal that a rank was asked to end by
//   DIR/ranks/rank-R.ended  rank R has nothing more to do
//   DIR/ranks/told          the results are written
//
// Who comes in where no rank is alive begins a new sitting: what the last one left is removed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/files/descriptor.h"

namespace heddle::compare {

// What a launcher says of this process, and what it is.
struct Seat {
  int rank = 0, ranks = 1;
  std::string program = {};  // version, commit, and the sum of its file
  // For so long ranks that are not there yet are waited for.
  std::chrono::milliseconds patience{60'000};

  bool alone() const { return ranks == 1; }
};

class Team {
 public:
  // What must be the same for all: names for people, and values.
  using Facts = std::vector<std::pair<std::string, std::string>>;

  // Comes in, and calls settle(is_first), one rank at a time: first is one that finds no other
  // alive. Error where another process has the seat, or ranks of another launch are there.
  Team(std::string directory, const Seat& seat, Facts facts,
       const std::function<void(bool is_first)>& settle);

  // Returns when all ranks are there, or Seat::patience is over. Their number.
  int meet() const;
  // Error naming a rank that differs from the lowest one.
  void check_alike() const;

  // The lock of a run; nothing where another rank has it.
  std::optional<io::Descriptor> claim(std::size_t run) const;
  void set_done(std::size_t run) const;
  bool is_done(std::size_t run) const;

  // The signal that a rank was asked to end by; 0: none.
  int stop_signal() const;
  void ask_to_stop(int signal) const;  // unless another was before

  // Waits until it is known who tells the results: true for the first of the ranks that live, false
  // when they are written.
  bool is_teller(const std::function<bool()>& should_stop) const;
  void set_told() const;
  // Says that this rank has ended, and waits for those that live to say the same: a launcher ends
  // all when one has ended with a status. Not for ever.
  void end_together() const;

  int rank() const { return seat_.rank; }
  int ranks() const { return seat_.ranks; }
  const std::string& host() const { return host_; }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string seat_of(int rank) const { return path("rank-" + std::to_string(rank)); }
  bool is_alive(int rank) const;
  void clear() const;
  void check_launch(int rank) const;
  void write_seat() const;

  std::string directory_;  // ranks/
  Seat seat_;
  Facts facts_;
  std::string host_;
  io::Descriptor own_;
};

// Takes the directory of a comparison beside other ranks; who is alone takes it for himself
// (run::lock_directory()), and each way keeps the other out.
io::Descriptor share_directory(const std::string& directory);

}  // namespace heddle::compare
