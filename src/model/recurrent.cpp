// The recurrent kinds are not there yet: their files take these functions' place.
#include "model/kinds.h"

namespace heddle::model {

namespace {

[[noreturn]] void refuse(const ModelConfig& config) {
  fail(ErrorCode::unsupported, "model", "kind", "decoder, encoder, encoder-decoder or vit",
       to_string(config.kind));
}

}  // namespace

void validate_recurrent(const ModelConfig& config) { refuse(config); }
std::unique_ptr<Model> make_rnn(const ModelConfig& config, Parameters) { refuse(config); }
std::unique_ptr<Model> make_birnn(const ModelConfig& config, Parameters) { refuse(config); }
std::unique_ptr<Model> make_rnn_seq2seq(const ModelConfig& config, Parameters) { refuse(config); }

}  // namespace heddle::model
