#include "pretrained/families/tables.h"

#include <cstddef>
#include <cstring>

#include "ops/copy/copy.h"

namespace heddle::pretrained {

bool same_tensor(const WeightFiles& files, std::string_view a, std::string_view b) {
  if (!files.contains(a) || !files.contains(b)) return false;
  if (files.type(a) != files.type(b) || files.bytes(a) != files.bytes(b)) return false;
  const Tensor x = ops::contiguous(files.load(a, DType::f32));
  const Tensor y = ops::contiguous(files.load(b, DType::f32));
  if (x.shape() != y.shape() || x.dtype() != y.dtype()) return false;
  return std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.bytes())) == 0;
}

}  // namespace heddle::pretrained
