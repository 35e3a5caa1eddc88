// Matrices in MXFP4 as gpt-oss' files have them: "X_blocks" [.., rows, G, 16] holds two numbers of
// four bits in each byte, the first in the low half, and "X_scales" [.., rows, G] the power of two
// that each 32 of them share.
#pragma once

#include <memory>

#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// The same files, where such a pair is one tensor of f32 numbers by the name "X_blocks", of the
// shape [.., rows, 32 G] and the type "MXFP4". Files without such pairs come back as they are.
std::unique_ptr<WeightFiles> with_mxfp4(std::unique_ptr<WeightFiles> files);

}  // namespace heddle::pretrained
