// An attention layer by the book: head by head, every pair of tokens in memory, plain ops in
// float64. It shares no code with the layer but the configuration and the parameters, so that tests
// and `heddle check` can hold the layer to it. Differentiable; far too slow for anything else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nn/attention/attention.h"

namespace heddle::nn::book {

using Parameters = std::map<std::string, Tensor, std::less<>>;  // names of for_each_parameter

// Arguments of a call as plain numbers; empty: absent.
struct Facts {
  std::vector<std::int64_t> key_lengths;               // [B]
  std::vector<std::int64_t> prefix_lengths;            // [B]
  std::vector<std::int64_t> documents, key_documents;  // [B · Tq], [B · Tk]
};

// x: [B, Tq, C], memory: [B, Tk, C] (x itself in self-attention), all f64.
Tensor attention(const AttentionConfig& config, const Parameters& parameters, const Tensor& x,
                 const Tensor& memory, const Facts& facts);

// Weights of a head, [B, Tq, Tk].
Tensor weights(const AttentionConfig& config, const Parameters& parameters, const Tensor& x,
               const Tensor& memory, const Facts& facts, std::int64_t head);

// The two that are added to tokens. sine: [T, C]
Tensor sine_waves(std::int64_t tokens, std::int64_t width);

}  // namespace heddle::nn::book
