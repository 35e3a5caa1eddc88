#include "generate/decode/beam/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/number_text.h"
#include "generate/decode/context.h"
#include "generate/decode/generate.h"
#include "generate/decode/sampling/best_tokens.h"
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
  bool ended = true;      // by an end token, not by the longest length
};

// One of the continuations of a step.
struct Continuation {
  std::size_t parent = 0;  // place in Sentence::live
  std::int32_t token = 0;
  double log_probability = 0;
};

class Sentence {
 public:
  Sentence(const BeamOptions& options, const BeamStart& start, std::int64_t longest)
      : options_(&options), start_(&start), longest_(longest), live_(1) {}

  const std::vector<Live>& live() const { return live_; }
  bool done() const { return done_; }
  std::int32_t last_token(std::size_t i) const {
    return nodes_[static_cast<std::size_t>(live_[i].node)].token;
  }
  // Tokens of each live hypothesis that may be needed.
  std::int64_t wanted() const {
    return full() ? room() + static_cast<std::int64_t>(start_->ends.size()) : room();
  }

  // Takes the best continuations of the live hypotheses, given the best tokens of each; the places
  // of the parents of those that are live now.
  std::vector<std::size_t> step(std::span<const std::vector<ScoredToken>> best) {
    ++length_;
    const bool last = length_ == longest_;
    if (last && start_->ends_at_limit) {
      for (const Live& l : live_) finish(rated(l.node, l.log_probability, true));
      live_.clear();
      done_ = true;
      return {};
    }
    std::vector<Live> next;
    std::vector<std::size_t> parents;
    const std::int64_t room = this->room();
    std::int64_t rank = 0;
    for (const Continuation& c : choose(best)) {
      const std::int32_t before = live_[c.parent].node;
      const bool good = rank++ < room;  // of a full beam, others are there to take the places
      if (is_end(c.token)) {
        if (good) finish(rated(before, c.log_probability, true));
        continue;
      }
      if (last && full() && !good) continue;
      if (std::ssize(next) == room) continue;
      next.push_back({static_cast<std::int32_t>(nodes_.size()), c.log_probability});
      nodes_.push_back({before, c.token});
      parents.push_back(c.parent);
    }
    live_ = std::move(next);
    done_ = live_.empty() || last || nothing_better();
    return parents;
  }

  std::vector<Hypothesis> result() const {
    std::vector<Finished> finished = finished_, cut;  // at the longest length
    for (const Live& l : live_) {
      if (length_ != longest_) break;
      Finished f = rated(l.node, l.log_probability, false);
      f.order += cut.size();
      (full() ? finished : cut).push_back(f);
    }
    std::vector<Hypothesis> all;
    for (const Finished& f : ranked(std::move(finished))) all.push_back(hypothesis(f));
    for (const Finished& f : ranked(std::move(cut))) all.push_back(hypothesis(f));
    all.resize(std::min(all.size(), static_cast<std::size_t>(options_->best)));
    return all;
  }

 private:
  bool full() const { return options_->kind == BeamKind::full && options_->beam > 1; }
  bool is_end(std::int32_t token) const {
    return std::ranges::find(start_->ends, token) != start_->ends.end();
  }
  // Places for live hypotheses.
  std::int64_t room() const {
    return full() ? options_->beam : options_->beam - std::ssize(finished_);
  }

  void finish(const Finished& f) {
    finished_.push_back(f);
    ++ends_;
    if (std::ssize(finished_) <= options_->beam) return;
    finished_ = ranked(std::move(finished_));
    finished_.pop_back();
  }

  std::vector<Continuation> choose(std::span<const std::vector<ScoredToken>> best) const {
    if (length_ == 1 && start_->first) return {{0, *start_->first, live_.front().log_probability}};
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
    const auto count = std::min(
        all.size(),
        static_cast<std::size_t>(full() ? room() * (1 + std::ssize(start_->ends)) : room()));
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                      better);
    all.resize(count);
    return all;
  }

  Finished rated(std::int32_t node, double log_probability, bool ended) const {
    return {node, log_probability, log_probability / penalty(*options_, length_), ends_, ended};
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

  Hypothesis hypothesis(const Finished& f) const {
    Hypothesis h;
    for (std::int32_t at = f.node; at != kNone; at = nodes_[static_cast<std::size_t>(at)].before)
      h.tokens.push_back(nodes_[static_cast<std::size_t>(at)].token);
    std::reverse(h.tokens.begin(), h.tokens.end());
    h.log_probability = f.log_probability;
    h.score = f.score;
    h.finished = f.ended;
    return h;
  }

  const BeamOptions* options_;
  const BeamStart* start_;
  std::int64_t longest_;
  std::int64_t length_ = 0;
  std::size_t ends_ = 0;  // hypotheses that finished
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
      sentences_.emplace_back(options, start, longest);
    places_.resize(sentences_.size());
    std::iota(places_.begin(), places_.end(), 0);
  }

  // Goes through one step; false when all sentences are done.
  bool step(const Tensor& logits) {
    std::vector<std::int64_t> counts;
    for (const std::size_t s : places_)
      counts.insert(counts.end(), sentences_[s].live().size(), sentences_[s].wanted());
    const Possible possible{
        .known = start_.tokenizer != nullptr ? start_.tokenizer->vocabulary() : 0,
        .never = start_.never};
    const auto best = best_tokens(logits, counts, possible);
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
  const auto check_token = [&](std::int32_t token, const char* what) {
    if (token < 0 || token >= start.logits.size(1))
      fail(ErrorCode::out_of_range, kBeamSearch, what,
           "0 to " + std::to_string(start.logits.size(1) - 1), std::to_string(token));
  };
  for (const std::int32_t end : start.ends) check_token(end, "end token");
  for (const std::int32_t token : start.never) check_token(token, "token that is never written");
  if (start.first) check_token(*start.first, "first token");
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
  start.tokenizer = decoding.tokenizer;
  auto found = std::move(beam_search(model, std::move(start), options, pass).front());
  for (Hypothesis& h : found)
    if (decoding.tokenizer != nullptr) h.text = text_of(*decoding.tokenizer, h.tokens, prompt);
  return found;
}

}  // namespace heddle::generate
