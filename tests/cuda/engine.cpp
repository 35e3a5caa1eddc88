// The engine: bytes go up, come down, and memory that is not there is refused.
#include "tensor/engine.h"

#include <numeric>
#include <span>

#include "cuda/sides.h"
#include "heddle/error.h"

namespace heddle::cuda_tests {

namespace {

const Device kGpu = Device::cuda(0);

void round_trips() {
  for (const std::int64_t count : {1, 1000, 300000, 5000001}) {  // more than all staging pieces
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 7);
    const Tensor x =
        Tensor::from<std::int64_t>({count}, std::span<const std::int64_t>(values), kGpu);
    judge_true("up and down: " + std::to_string(count), x.to_vector<std::int64_t>() == values);
  }
  const std::vector<Tensor> many = {Tensor::full({3}, 1.5, DType::bf16, kGpu),
                                    Tensor::full({70000}, 7, DType::u8, kGpu),
                                    Tensor::full({400000}, -2, DType::f64, kGpu)};
  const std::vector<Tensor> read_back = read(many);
  judge_true("fill bf16", read_back[0].to_vector<bf16>()[2].to_float() == 1.5f);
  judge_true("fill u8", read_back[1].to_vector<std::uint8_t>() ==
                            std::vector<std::uint8_t>(70000, std::uint8_t{7}));
  judge_true("fill f64", read_back[2].to_vector<double>() == std::vector<double>(400000, -2.0));
}

void memory() {
  Engine& engine = engine_of(kGpu);
  judge_true("a name and memory", !engine.name().empty() && engine.memory_bytes() > (1 << 30));
  bool refused = false;
  try {
    (void)Tensor::empty({engine.memory_bytes() + 1}, DType::u8, kGpu);
  } catch (const Error& e) {
    refused = e.code() == ErrorCode::out_of_memory;
  }
  judge_true("more than there is", refused);
  // Half of the memory in turns: what was freed serves the next, also of another size.
  for (int i = 0; i < 20; ++i)
    (void)Tensor::zeros({engine.memory_bytes() / 2 + i * 1000003}, DType::u8, kGpu);
  engine.trim();
  judge_true("alive", Tensor::full({5}, 3, DType::f32, kGpu).to_vector<float>()[4] == 3.0f);
}

}  // namespace

void test_engine() {
  round_trips();
  memory();
}

}  // namespace heddle::cuda_tests
