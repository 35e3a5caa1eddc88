// The smallest programs that use Heddle: whether there is a GPU, [[1, 2], [3, 4]] times [[5], [6]],
// and, given the directory of a run, a text by its model.
#include <cstdio>
#include <vector>

#include "heddle/error.h"
#include "heddle/language_model.h"
#include "heddle/ops.h"
#include "heddle/tensor.h"

namespace {

bool multiplies() {
  using heddle::Tensor;
  const Tensor a = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::from<float>({2, 1}, {5, 6});
  const std::vector<float> c = heddle::ops::matmul(a, b).to_vector<float>();
  std::printf("%g %g\n", c[0], c[1]);
  return c == std::vector<float>{17, 39};
}

// The same in f64, or why that cannot be.
void multiplies_in_f64() {
  using heddle::Tensor;
  try {
    const Tensor c = heddle::ops::matmul(Tensor::from<double>({2, 2}, {1, 2, 3, 4}),
                                         Tensor::from<double>({2, 1}, {5, 6}));
    std::printf("f64: %g %g\n", c.to_vector<double>()[0], c.to_vector<double>()[1]);
  } catch (const heddle::Error& error) {
    std::printf("f64: %s\n", error.what());
  }
}

// The first GPU, or why there is none.
void looks_for_a_gpu() {
  try {
    (void)heddle::Tensor::zeros({1}, heddle::DType::f32, heddle::Device::cuda());
    std::printf("cuda:0\n");
  } catch (const heddle::Error& error) {
    std::printf("%s\n", error.what());
  }
}

bool writes(const char* directory) {
  const heddle::LanguageModel model(directory);
  const heddle::Generation g =
      model.generate("the ", {.tokens = 20, .sampling = {.temperature = 0}});
  std::printf("%s\n", g.text().c_str());
  return g.samples[0].tokens.size() == 20;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    looks_for_a_gpu();
    multiplies_in_f64();
    return multiplies() && (count < 2 || writes(arguments[1])) ? 0 : 1;
  } catch (const heddle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
