// The time of a step on several ranks: each computes its share of a batch, then they talk. Nothing
// of the two overlaps, so
//
//   step = compute + communication
//   compute = the rank's FLOP / its FLOP/s, or what the plan of its operations takes
//   communication = 8 · bytes / (bits per second) + exchanges · latency + messages ·
//   kMessageSeconds
//
// The bytes are those that the rank sends, while it receives about as many: a link carries both
// directions at once. An exchange is begun with all others together and waits once. Packing buffers
// and adding what came in are not in it.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "recipe/recipe.h"

namespace heddle::plan {

// From a message that is sent to one that has come, over Ethernet and TCP.
inline constexpr double kUsualLatency = 20e-6;
// The work of a rank's processor for a message, sent or received, whatever is in it.
inline constexpr double kMessageSeconds = 1e-6;

// Bytes a second that a rank sends while it packs, unpacks and adds, by one thread in memory; the
// link is not busy then. 2.2 to 4.1e9 were measured (docs/distributed.md).
inline constexpr double kBufferRate = 3e9;

struct Link {
  double bits_per_s = 0;  // of a rank, in each direction
  double latency = kUsualLatency;
};

// "10G", "2.5Gbit/s", "400M": bits a second, in powers of 1000. Error naming the option, also where
// bytes are meant.
double parse_bits_per_s(const std::string& text, const std::string& option);
// "20us", "1.5ms", "800ns", "0s"
double parse_seconds(const std::string& text, const std::string& option);
// "20T", "1.5P": FLOP/s
double parse_flops_per_s(const std::string& text, const std::string& option);

// What a rank says in a step: how often all of them meet, in how many messages of its own.
struct Talk {
  std::int64_t bytes = 0;      // sent
  std::int64_t exchanges = 0;  // each waits for all others once
  std::int64_t messages = 0;   // sent and received
};
Talk talk_of(std::int64_t sent_bytes, int ranks);

double seconds_on(const Link& link, const Talk& talk);

struct StepTime {
  double compute = 0, communication = 0;

  double seconds() const { return compute + communication; }
  double share_of_communication() const { return communication / seconds(); }
};

// Where more ranks stop to pay, at this batch: powers of two are tried, up to its sequences. For
// more ranks than the recipe has parts, train.parts is taken as large as it must be.
struct Scaling {
  StepTime here;  // on the ranks of the plan
  // The most ranks that read, each, at least half of the tokens a second that one alone reads.
  std::int64_t pays_to = 1;
  std::int64_t fastest = 1;  // ranks whose step is the shortest
  std::int64_t tried = 1;    // at most
};

// `compute` is the time of the step that one of `ranks` ranks computes; `recipe.model.sizes` must
// be known.
Scaling scaling_on(const Link& link, const recipe::Recipe& recipe, int ranks, double compute);

}  // namespace heddle::plan
