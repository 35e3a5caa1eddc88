#include "generate/decode/writer.h"

#include <algorithm>
#include <string>

#include "ops/copy/copy.h"

namespace heddle::generate {

Writer::Writer(const GenerationOptions& options, const Decoding& decoding,
               std::span<const std::int32_t> prompt, const WriterPlace& place)
    : decoding_(&decoding),
      place_(place),
      prompt_(prompt.size()),
      sequence_(prompt.begin(), prompt.end()) {
  if (decoding.tokenizer != nullptr) stream_.emplace(*decoding.tokenizer, options.stop, prompt);
}

std::int32_t Writer::draw(std::span<const float> scores, Sampler& sampler) const {
  const DrawPlace at{static_cast<std::int64_t>(sequence_.size()), place_.stream};
  return sampler.draw(scores, {sequence_, prompt_}, at);
}

bool Writer::add(std::int32_t token, const TextSink& sink) {
  const auto end = [&](Finish how) {
    finish(how, sink);
    return false;
  };
  if (std::ranges::find(decoding_->ends, token) != decoding_->ends.end()) return end(Finish::end);
  sequence_.push_back(token);
  sample_.tokens.push_back(token);
  if (stream_) {
    show(stream_->add(token), sink);
    if (stream_->stopped()) return end(Finish::stop);
  }
  return room() == 0 ? end(Finish::length) : true;
}

void Writer::finish(Finish how, const TextSink& sink) {
  sample_.finish = how;
  if (!stream_) return;
  show(stream_->finish(), sink);
  // Held-back text may contain a stop string that only the end of the bytes made certain.
  if (stream_->stopped()) sample_.finish = Finish::stop;
  sample_.text = stream_->text();
}

void Writer::show(const std::string& piece, const TextSink& sink) const {
  if (sink && !piece.empty()) sink(place_.number, piece);
}

HostScores::HostScores(const Tensor& logits, const text::Tokenizer* tokenizer)
    : here_(ops::contiguous(ops::cast(of_known_tokens(logits, tokenizer), DType::f32))
                .to(Device::cpu)) {}

std::span<const float> HostScores::row(std::int64_t i) const {
  return {here_.data<float>() + i * here_.size(1), static_cast<std::size_t>(here_.size(1))};
}

}  // namespace heddle::generate
