// Every routine of the CUDA backend on cuda:0 against the formulas of the mock device, and twice
// for the same bits. It needs nothing but the tensors and the backend, so that tests/cuda/build.sh
// can make it on a machine that has nvcc and none of the libraries that the rest wants.
//
//     cuda_tests [attention | steps | measure [attention | steps]]
#include <cstdio>
#include <cstring>
#include <exception>

#include "cuda/sides.h"
#include "heddle/error.h"
#include "heddle/memory.h"
#include "tensor/engine.h"

namespace {

constexpr int kSkipped = 77;

int run(bool measures, bool attention_alone, bool steps_alone) {
  using namespace heddle;
  if (!has_engine(Device::cuda(0))) {
    try {
      (void)engine_of(Device::cuda(0));
    } catch (const Error& e) {
      std::printf("skipped: %s\n", e.what());
    }
    return kSkipped;
  }
  std::printf("%s\n", engine_of(Device::cuda(0)).name().c_str());
  if (measures) {
    if (attention_alone)
      cuda_tests::measure_attention();
    else if (steps_alone)
      cuda_tests::measure_steps();
    else
      cuda_tests::measure();
    return 0;
  }
  set_guard_mode(true);  // memory that was never written is NaN
  if (!attention_alone) cuda_tests::test_steps();
  if (!attention_alone && !steps_alone) {
    cuda_tests::test_engine();
    cuda_tests::test_elementwise();
    cuda_tests::test_sums();
    cuda_tests::test_products();
  }
  if (!steps_alone) {
    cuda_tests::test_attention();
    cuda_tests::test_attention_bits();
  }
  std::printf("%d results judged, %d faults\n", cuda_tests::judged(), cuda_tests::faults());
  return cuda_tests::faults() == 0 && cuda_tests::judged() > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 && std::strcmp(argv[1], "measure") == 0,
               argc > 1 && std::strcmp(argv[argc - 1], "attention") == 0,
               argc > 1 && std::strcmp(argv[argc - 1], "steps") == 0);
  } catch (const std::exception& e) {
    std::printf("FAULT %s\n", e.what());
    return 1;
  }
}
