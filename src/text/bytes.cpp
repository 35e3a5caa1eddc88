#include "text/bytes.h"

#include "text/train.h"

namespace heddle::text {

std::shared_ptr<const Tokenizer> bytes() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::byte;
  return train_tokenizer(spec, {});
}

}  // namespace heddle::text
