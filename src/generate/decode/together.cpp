#include "generate/decode/together.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "generate/decode/clock.h"
#include "generate/decode/lookup.h"
#include "model/decoding.h"

namespace heddle::generate {

struct Together::Live {
  Writer writer;
  std::unique_ptr<model::DecodeState> state;
  Clock::time_point begin;
  std::int64_t number = 0;
  std::size_t read = 0;                 // tokens of the sequence that the model has read
  std::vector<std::int32_t> next = {};  // those of this step: what is there, then what is tried
  std::size_t tried = 0;
  Clock::time_point first_token = {};
};

Together::Together(const model::Model& model, const GenerationOptions& options,
                   const Decoding& decoding, TogetherOptions together)
    : model_(model),
      options_(options),
      decoding_(decoding),
      together_(std::move(together)),
      sampler_(options.sampling) {
  pass_.precision = decoding.precision;
}

Together::~Together() = default;

// A prompt that is seen both ways has other keys than its beginning had as a prompt.
bool Together::keeps_states() const {
  return decoding_.before != nullptr && !model_.config().attention.prefix;
}

Together::Live& Together::join(const TextRequest& request, std::int64_t number) {
  Live live{Writer(options_, decoding_, request.prompt, {number, 0, request.tokens}),
            {},
            Clock::now(),
            number};
  results_[static_cast<std::size_t>(number)].prompt_tokens = std::ssize(request.prompt);
  return live_.emplace_back(std::move(live));
}

void Together::begin(Live& live, const TextRequest& request) {
  if (keeps_states()) {
    live.state = take_before(*decoding_.before, request.prompt);
    if (live.state) live.read = static_cast<std::size_t>(live.state->position());
    results_[static_cast<std::size_t>(live.number)].reused_tokens =
        static_cast<std::int64_t>(live.read);
  }
  if (!live.state) live.state = model_.begin({}, 1, request.positions, pass_);
}

// How many tokens of a sequence go into this step, when the step has room for so many; 0: none, it
// waits. Fills live.next; `tries` of its tokens may be guesses.
std::size_t Together::wanted_now(Live& live, std::size_t room, std::size_t tries) const {
  const std::span<const std::int32_t> all = live.writer.sequence();
  const std::size_t left = all.size() - live.read;
  const std::size_t count = reads_whole(model_.config()) ? left : std::min(left, room);
  const auto here = all.subspan(live.read, count);
  live.next.assign(here.begin(), here.end());
  live.tried = 0;
  if (count == left && options_.lookup > 0 && live.writer.written() > 0) {
    // Of the tokens that may still follow the last one is not tried: nobody reads on from it.
    const std::int64_t most = std::min(options_.lookup, live.writer.room() - 1);
    const auto guess = looked_up(all, std::min(static_cast<std::size_t>(most), tries));
    live.next.insert(live.next.end(), guess.begin(), guess.end());
    live.tried = guess.size();
  }
  return count;
}

// The scores after what is certain give a token. As long as that is the one that was tried, the
// scores after it count too; then the model takes back what it has read in vain.
bool Together::take(Live& live, const HostScores& scores, std::int64_t first_row,
                    std::size_t scored) {
  Generation& result = results_[static_cast<std::size_t>(live.number)];
  if (live.writer.written() == 0) {
    live.first_token = Clock::now();
    result.prompt_seconds = seconds_since(live.begin);
  }
  const std::vector<std::int32_t> guess(live.next.end() - static_cast<std::ptrdiff_t>(live.tried),
                                        live.next.end());
  result.tried_tokens += static_cast<std::int64_t>(live.tried);
  bool goes_on = true;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < scored && goes_on; ++i) {
    const std::span<const float> row = scores.row(first_row + static_cast<std::int64_t>(i));
    goes_on = live.writer.add(live.writer.draw(row, sampler_), together_.sink);
    if (i == live.tried || !goes_on || live.writer.sequence().back() != guess[i]) break;
    ++kept;
  }
  result.kept_tokens += static_cast<std::int64_t>(kept);
  live.read += kept;
  if (kept < live.tried) live.state->rewind(static_cast<std::int64_t>(live.read));
  return goes_on;
}

void Together::leave(Live& live) {
  Generation& result = results_[static_cast<std::size_t>(live.number)];
  if (live.first_token != Clock::time_point{})
    result.decode_seconds = seconds_since(live.first_token);
  if (keeps_states() && live.state) {
    const auto read = live.writer.sequence().first(live.read);
    *decoding_.before = {{read.begin(), read.end()}, std::move(live.state)};
  }
  result.samples.push_back(live.writer.take());
  if (together_.done) together_.done(static_cast<std::size_t>(live.number), result);
}

// Those that write go first, a token each; what they try and prompts share what is left of a block,
// so that a step's memory does not grow with the guesses of many.
bool Together::step() {
  std::vector<model::NextTokens> now;
  std::vector<std::size_t> who;
  const auto writing_now = static_cast<std::size_t>(
      std::ranges::count_if(live_, [](const Live& live) { return live.writer.written() > 0; }));
  std::size_t room = model::kPromptBlock - std::min<std::size_t>(model::kPromptBlock, writing_now);
  for (const bool writing : {true, false})
    for (std::size_t i = 0; i < live_.size(); ++i) {
      Live& live = live_[i];
      if ((live.writer.written() > 0) != writing || (!writing && room == 0)) continue;
      const std::size_t count = wanted_now(live, writing ? 1 : room, room);
      const bool whole = live.read + count == live.writer.sequence().size();
      now.push_back({live.state.get(), live.next, whole ? 1 + live.tried : 1});
      who.push_back(i);
      room -= std::min(room, live.next.size() - (writing ? 1 : 0));
    }
  const HostScores scores(model_.next_each(now, pass_), decoding_.tokenizer);
  for (const std::size_t i : who) live_[i].read += live_[i].next.size() - live_[i].tried;
  if (options_.cancelled && options_.cancelled()) return false;
  take_all(now, who, scores);
  return true;
}

void Together::take_all(std::span<const model::NextTokens> now, std::span<const std::size_t> who,
                        const HostScores& scores) {
  std::vector<bool> ended(live_.size(), false);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    Live& live = live_[who[i]];
    if (live.read == live.writer.sequence().size())
      ended[who[i]] = !take(live, scores, row, now[i].scores);
    row += static_cast<std::int64_t>(now[i].scores);
  }
  std::vector<Live> going;
  going.reserve(live_.size());
  for (std::size_t i = 0; i < live_.size(); ++i)
    if (ended[i])
      leave(live_[i]);
    else
      going.push_back(std::move(live_[i]));
  live_ = std::move(going);
}

std::vector<Generation> Together::run(std::span<const TextRequest> requests) {
  results_.assign(requests.size(), {});
  std::size_t next = 0;
  while (next < requests.size() || !live_.empty()) {
    for (; next < requests.size() && std::ssize(live_) < together_.batch; ++next)
      begin(join(requests[next], static_cast<std::int64_t>(next)), requests[next]);
    if (step()) continue;
    // Those that never began end as well, without a cache.
    for (; next < requests.size(); ++next) join(requests[next], static_cast<std::int64_t>(next));
    for (Live& live : live_) {
      live.writer.finish(Finish::cancelled, together_.sink);
      leave(live);
    }
    live_.clear();
  }
  return std::move(results_);
}

}  // namespace heddle::generate
