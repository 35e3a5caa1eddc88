// Beam search: the most probable sequences, searched for broadly.
//
// A step continues every live hypothesis of a sentence with every token, and of all these the best
// `beam - finished` stay, by the sum of their log-probabilities; those that end with the end token
// are finished. So `beam` hypotheses are kept, finished ones included, and a beam of 1 is greedy
// decoding. Of equal sums the one whose beginning was better comes first, then the lower token.
//
// That is a narrowing beam. A full one keeps `beam` live hypotheses beside the `beam` best finished
// ones: a hypothesis that ends as one of the best `beam` continuations is finished, and the best
// `beam` that do not end stay. At the longest length all that are left rank with the finished ones.
//
// Finished hypotheses are ranked by score = log-probability / length^a (mean) or
// log-probability / ((5 + length) / 6)^a (gnmt: Wu et al. 2016), where a is the length penalty and
// the end token counts. With a = 0 both are the plain sum, which favours short texts.
//
// A sentence is done when nothing can change its result: a hypothesis gains at most by its length,
// so a live one with log-probability s never scores better than s / penalty(longest).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "generate/decode/decoding.h"
#include "heddle/generation.h"
#include "model/model.h"

namespace heddle::generate {

// Throws Error naming the option, what it may be and what it was.
void validate(const BeamOptions& options);

// A batch of sentences whose beginnings the model has read.
struct BeamStart {
  std::unique_ptr<model::DecodeState> state;
  Tensor logits;                               // [B, V] after the beginnings
  std::vector<std::int64_t> longest;           // of each: tokens at most, the end token included
  std::vector<std::int32_t> ends;              // none: all hypotheses go on to the longest length
  std::vector<std::int32_t> never = {};        // no hypothesis has one of these
  std::optional<std::int32_t> first = {};      // the first token of all hypotheses, at no cost
  bool ends_at_limit = false;                  // the last token may only be an end, at no cost
  const text::Tokenizer* tokenizer = nullptr;  // its tokens alone are written; null: all scores'
};

// The best hypotheses of each sentence, best first: finished ones, then, where there are too few
// of them, those that the longest length cut off. Their texts are left to the caller.
std::vector<std::vector<Hypothesis>> beam_search(const model::Model& model, BeamStart start,
                                                 const BeamOptions& options, const nn::Pass& pass);

// Continuations of a prompt by a language model; `tokens` more at most. Throws Error as generate().
std::vector<Hypothesis> beam_continue(const model::Model& model,
                                      std::span<const std::int32_t> prompt, std::int64_t tokens,
                                      const BeamOptions& options, const Decoding& decoding = {});

}  // namespace heddle::generate
