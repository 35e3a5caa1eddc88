#include "generate/decode/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/number_text.h"
#include "generate/decode/best_tokens.h"
#include "generate/decode/context.h"
#include "generate/decode/generate.h"
#include "generate/decode/text_stream.h"
#include "heddle/error.h"
#include "heddle/tape.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kBeamSearch = "beam search";
constexpr std::int32_t kNone = -1;

double penalty(const BeamOptions& o, std::int64_t length) {
  const auto n = static_cast<double>(length);
  return std::pow(o.norm == LengthNorm::gnmt ? (5 + n) / 6 : n, o.length_penalty);
}

// Hypotheses share their beginnings: each is a token appended to another.
struct Node {
  std::int32_t before = kNone;  // place in Sentence::nodes
  std::int32_t token = 0;
};

struct Live {
  std::int32_t node = kNone;  // its last token; none at the beginning
  double log_probability = 0;
};

struct Finished {
  std::int32_t node = kNone;
  double log_probability = 0;
  double score = 0;
  std::size_t order = 0;  // in which it came
};

// One of the continuations of a step.
struct Continuation {
  std::size_t parent = 0;  // place in Sentence::live
  std::int32_t token = 0;
  double log_probability = 0;
};

class Sentence {
 public:
  Sentence(const BeamOptions& options, std::vector<std::int32_t> ends, std::int64_t longest)
      : options_(&options), ends_(std::move(ends)), longest_(longest), live_(1) {}

  const std::vector<Live>& live() const { return live_; }
  bool done() const { return done_; }
  std::int32_t last_token(std::size_t i) const {
    return nodes_[static_cast<std::size_t>(live_[i].node)].token;
  }
  std::int64_t room() const { return options_->beam - static_cast<std::int64_t>(finished_.size()); }

  // Takes the best continuations of the live hypotheses, given the best tokens of each; the places
  // of the parents of those that are live now.
  std::vector<std::size_t> step(std::span<const std::vector<ScoredToken>> best) {
    ++length_;
    std::vector<Live> next;
    std::vector<std::size_t> parents;
    for (const Continuation& c : choose(best)) {
      const std::int32_t before = live_[c.parent].node;
      if (std::ranges::find(ends_, c.token) != ends_.end()) {
        finished_.push_back(rated(before, c.log_probability, finished_.size()));
        continue;
      }
      next.push_back({static_cast<std::int32_t>(nodes_.size()), c.log_probability});
      nodes_.push_back({before, c.token});
      parents.push_back(c.parent);
    }
    live_ = std::move(next);
    done_ = live_.empty() || length_ == longest_ || nothing_better();
    return parents;
  }

  std::vector<Hypothesis> result() const {
    std::vector<Finished> cut;  // at the longest length
    for (const Live& l : live_)
      if (length_ == longest_) cut.push_back(rated(l.node, l.log_probability, cut.size()));
    std::vector<Hypothesis> all;
    for (const Finished& f : ranked(finished_)) all.push_back(hypothesis(f, true));
    for (const Finished& f : ranked(cut)) all.push_back(hypothesis(f, false));
    all.resize(std::min(all.size(), static_cast<std::size_t>(options_->best)));
    return all;
  }

 private:
  std::vector<Continuation> choose(std::span<const std::vector<ScoredToken>> best) const {
    std::vector<Continuation> all;
    for (std::size_t parent = 0; parent < live_.size(); ++parent)
      for (const ScoredToken& t : best[parent])
        all.push_back({parent, t.token, live_[parent].log_probability + t.log_probability});
    // The list is in the order of parents, and within one of tokens from the best: equal sums of
    // one parent may still be out of order of their ids, where rounding made them equal.
    const auto better = [](const Continuation& a, const Continuation& b) {
      if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
      return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
    };
    const auto count = std::min(all.size(), static_cast<std::size_t>(room()));
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                      better);
    all.resize(count);
    return all;
  }

  Finished rated(std::int32_t node, double log_probability, std::size_t order) const {
    return {node, log_probability, log_probability / penalty(*options_, length_), order};
  }

  static std::vector<Finished> ranked(std::vector<Finished> all) {
    std::sort(all.begin(), all.end(), [](const Finished& a, const Finished& b) {
      return a.score != b.score ? a.score > b.score : a.order < b.order;
    });
    return all;
  }

  // Log-probabilities are 0 or less and only fall, so a score is best at the longest length. An
  // equal score would rank after hypotheses that finished earlier.
  bool nothing_better() const {
    const auto best = static_cast<std::size_t>(options_->best);
    if (finished_.size() < best) return false;
    const double hope = live_.front().log_probability / penalty(*options_, longest_);
    return ranked(finished_)[best - 1].score >= hope;
  }

  Hypothesis hypothesis(const Finished& f, bool finished) const {
    Hypothesis h;
    for (std::int32_t at = f.node; at != kNone; at = nodes_[static_cast<std::size_t>(at)].before)
      h.tokens.push_back(nodes_[static_cast<std::size_t>(at)].token);
    std::reverse(h.tokens.begin(), h.tokens.end());
    h.log_probability = f.log_probability;
    h.score = f.score;
    h.finished = finished;
    return h;
  }

  const BeamOptions* options_;
  std::vector<std::int32_t> ends_;
  std::int64_t longest_;
  std::int64_t length_ = 0;
  bool done_ = false;
  std::vector<Node> nodes_;
  std::vector<Live> live_;  // the best first
  std::vector<Finished> finished_;
};

// All sentences of a batch: their live hypotheses are the rows of the model's state, sentence by
// sentence.
class Search {
 public:
  Search(BeamStart& start, const BeamOptions& options) : start_(start) {
    for (const std::int64_t longest : start.longest)
      sentences_.emplace_back(options, start.ends, longest);
    places_.resize(sentences_.size());
    std::iota(places_.begin(), places_.end(), 0);
  }

  // Goes through one step; false when all sentences are done.
  bool step(const Tensor& logits) {
    std::vector<std::int64_t> counts;
    for (const std::size_t s : places_)
      counts.insert(counts.end(), sentences_[s].live().size(), sentences_[s].room());
    const auto best = best_tokens(logits, counts);
    std::vector<std::size_t> going;
    rows_.clear();
    tokens_.clear();
    std::size_t first = 0;
    for (const std::size_t s : places_) {
      const std::size_t count = sentences_[s].live().size();
      const auto parents = sentences_[s].step(std::span(best).subspan(first, count));
      if (!sentences_[s].done()) {
        going.push_back(s);
        for (std::size_t i = 0; i < parents.size(); ++i) {
          rows_.push_back(static_cast<std::int64_t>(first + parents[i]));
          tokens_.push_back(sentences_[s].last_token(i));
        }
      }
      first += count;
    }
    places_ = std::move(going);
    follow(first);
    return !places_.empty();
  }

  // [rows, 1]
  Tensor tokens() const {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(tokens_.size()), 1}, tokens_);
  }

  std::vector<std::vector<Hypothesis>> results() const {
    std::vector<std::vector<Hypothesis>> all;
    all.reserve(sentences_.size());
    for (const Sentence& s : sentences_) all.push_back(s.result());
    return all;
  }

 private:
  // The state's rows become those of the live hypotheses; nothing moves where nothing changed.
  void follow(std::size_t former) {
    if (rows_.empty()) return;
    bool same = rows_.size() == former;
    for (std::size_t i = 0; same && i < former; ++i)
      same = rows_[i] == static_cast<std::int64_t>(i);
    if (!same) start_.state->reorder(rows_);
  }

  BeamStart& start_;
  std::vector<Sentence> sentences_;
  std::vector<std::size_t> places_;  // of the sentences that are not done
  std::vector<std::int64_t> rows_;
  std::vector<std::int32_t> tokens_;
};

void check_start(const BeamStart& start) {
  const auto sentences = static_cast<std::int64_t>(start.longest.size());
  if (!start.state || !start.logits.defined() || start.logits.rank() != 2 ||
      start.logits.size(0) != sentences)
    fail(ErrorCode::invalid_argument, kBeamSearch, "start",
         "a state and scores of " + std::to_string(sentences) + " sentences",
         start.logits.describe());
  for (const std::int64_t longest : start.longest)
    if (longest < 1)
      fail(ErrorCode::invalid_argument, kBeamSearch, "longest length", "1 or more",
           std::to_string(longest));
  for (const std::int32_t end : start.ends)
    if (end < 0 || end >= start.logits.size(1))
      fail(ErrorCode::out_of_range, kBeamSearch, "end token",
           "0 to " + std::to_string(start.logits.size(1) - 1), std::to_string(end));
}

}  // namespace

void validate(const BeamOptions& o) {
  const auto require = [](bool ok, std::string_view option, const std::string& expected,
                          const std::string& got) {
    if (!ok)
      fail(ErrorCode::invalid_argument, kBeamSearch, "option " + std::string(option), expected,
           got);
  };
  require(o.beam >= 1 && o.beam <= kMostBeams, "beam", "1 to " + std::to_string(kMostBeams),
          std::to_string(o.beam));
  require(o.best >= 1 && o.best <= o.beam, "best",
          "1 to the beam's size, " + std::to_string(o.beam), std::to_string(o.best));
  require(o.length_penalty >= 0 && std::isfinite(o.length_penalty), "length_penalty", "0 or more",
          number_text(o.length_penalty));
}

std::vector<std::vector<Hypothesis>> beam_search(const model::Model& model, BeamStart start,
                                                 const BeamOptions& options, const nn::Pass& pass) {
  validate(options);
  check_start(start);
  if (start.longest.empty()) return {};
  const NoGrad no_grad;
  Search search(start, options);
  Tensor logits = std::move(start.logits);
  while (search.step(logits)) logits = model.next(*start.state, search.tokens(), pass);
  return search.results();
}

std::vector<Hypothesis> beam_continue(const model::Model& model,
                                      std::span<const std::int32_t> prompt, std::int64_t tokens,
                                      const BeamOptions& options, const Decoding& decoding) {
  validate(options);
  check_prompt(model, prompt);
  if (tokens < 1 || tokens > kMostTokens)
    fail(ErrorCode::invalid_argument, kBeamSearch, "option tokens",
         "1 to " + std::to_string(kMostTokens), std::to_string(tokens));
  const auto length = static_cast<std::int64_t>(prompt.size());
  plan_window(model.config(), length, tokens, false);  // refuses what does not fit
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = decoding.precision;
  BeamStart start;
  start.state = model.begin({}, 1, length + tokens, pass);
  start.logits = model.next(*start.state, Tensor::from<std::int32_t>({1, length}, prompt), pass);
  start.longest = {tokens};
  start.ends = decoding.ends;
  auto found = std::move(beam_search(model, std::move(start), options, pass).front());
  for (Hypothesis& h : found)
    if (decoding.tokenizer != nullptr) h.text = text_of(*decoding.tokenizer, h.tokens, prompt);
  return found;
}

}  // namespace heddle::generate
