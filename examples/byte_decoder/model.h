// A small decoder over bytes, written against Heddle's public ops.
//
//   x = embedding(bytes)
//   per layer: x += W_o · attention(rms_norm(x)); x += W_2 · gelu(W_1 · rms_norm(x))
//   loss = cross-entropy of W_out · rms_norm(x)
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tensor.h"

namespace byte_decoder {

inline constexpr std::int64_t kBytes = 256;

struct Config {
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t context = 128;
  heddle::DType precision = heddle::DType::f32;  // of activations; weights are f32
};

// Throws heddle::Error when the sizes do not fit together.
void validate(const Config& config);

class Decoder {
 public:
  Decoder(const Config& config, std::uint64_t seed);

  heddle::Tensor loss(const heddle::Tensor& inputs, const heddle::Tensor& targets) const;
  // Logits of the byte after the last one; inputs is [1, T], T at most the context.
  std::vector<float> next_logits(const heddle::Tensor& inputs) const;

  std::vector<heddle::Tensor>& parameters() { return parameters_; }
  std::int64_t parameter_count() const;

 private:
  struct Layer {
    heddle::Tensor attention_gain, query_key_value, attention_out;
    heddle::Tensor feed_gain, feed_in, feed_out;
  };

  heddle::Tensor parameter(const heddle::Shape& shape, double stddev);
  heddle::Tensor gain();
  heddle::Tensor attend(const heddle::Tensor& x, const Layer& layer) const;  // [B, T, C]
  heddle::Tensor hidden(const heddle::Tensor& inputs) const;                 // [B, T, C]

  Config config_;
  std::uint64_t seed_;
  std::vector<heddle::Tensor> parameters_;
  std::vector<Layer> layers_;
  heddle::Tensor table_, final_gain_, output_;
  heddle::ops::RopeTables rope_;
};

}  // namespace byte_decoder
