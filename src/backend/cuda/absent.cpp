// What a build without nvcc has instead of the CUDA backend.
#include "backend/cuda/cuda.h"
#include "language/language.h"
#include "tensor/engine.h"

namespace heddle::cuda {

void open() {}

void find_devices() { explain_absence(DeviceKind::cuda, mark("this build has no CUDA backend")); }

}  // namespace heddle::cuda
