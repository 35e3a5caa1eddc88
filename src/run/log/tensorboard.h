// Event files as TensorBoard reads them: a TFRecord file of Event messages (tensorflow's
// event.proto), of which scalars need four fields, so that they are encoded by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::run {

struct TaggedScalar {
  std::string_view tag;
  float value = 0;
};

// Length and bytes, each with its checksum.
std::string tf_record(std::string_view bytes);

// The event that a file begins with: which version of the format it has.
std::string tf_version_event(double wall_time);
// The values of one step.
std::string tf_scalar_event(double wall_time, std::int64_t step,
                            std::span<const TaggedScalar> scalars);

}  // namespace heddle::run
