#include "run/checksum.h"

#include "heddle/error.h"
#include "heddle/ops/copy.h"
#include "io/files/checksums/crc32.h"
#include "run/state.h"

namespace heddle::run {

namespace {

void add(io::Crc32& sum, const Tensor& tensor) {
  if (tensor.bytes() == 0) return;
  const Tensor plain = ops::contiguous(tensor.detach()).to(Device::cpu);
  sum.add(plain.raw(), plain.bytes());
}

}  // namespace

std::string checksum(const std::string& state, const std::vector<io::NamedTensor>& tensors) {
  io::Crc32 sum;
  sum.add(state);
  for (const io::NamedTensor& t : tensors) add(sum, t.tensor);
  return sum.text();
}

void check_sum(const io::SafetensorsFile& file,
               const std::function<Tensor(const io::TensorEntry&)>& tensor_of) {
  const auto written = file.metadata().find(kChecksumKey);
  if (written == file.metadata().end()) return;
  const auto state = file.metadata().find(kStateKey);
  io::Crc32 sum;
  sum.add(state == file.metadata().end() ? "" : state->second);
  for (const io::TensorEntry& entry : file.entries()) add(sum, tensor_of(entry));
  if (sum.text() != written->second)
    fail(ErrorCode::io, file.path(), "its bytes are not those that were written",
         "checksum " + written->second, sum.text());
}

}  // namespace heddle::run
