#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/repeat.h"
#include "tensor/engine.h"

namespace heddle::backend {
namespace {

// Records by counting.
class CountingEngine final : public Engine {
 public:
  std::byte* allocate(std::size_t bytes) override { return new std::byte[bytes]; }
  void release(std::byte* block, std::size_t) noexcept override { delete[] block; }
  void fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) override {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(at + static_cast<std::size_t>(i) * width, element, width);
  }
  void upload(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  std::string name() const override { return "counting"; }
  std::int64_t memory_bytes() const override { return 1 << 20; }
  bool records() const noexcept override { return true; }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    work();
    if (refuses) return nullptr;
    return std::make_unique<Counted>(*this);
  }

  bool refuses = false;
  int repeats = 0;

 private:
  struct Counted final : Recording {
    explicit Counted(CountingEngine& owner) : engine(owner) {}
    void repeat() override { ++engine.repeats; }
    CountingEngine& engine;
  };
};

const Device kCounting = Device::plugin(1);

CountingEngine& engine() {
  static CountingEngine& one = []() -> CountingEngine& {
    auto* made = new CountingEngine;  // outlives its tensors
    add_engine(kCounting, *made);
    return *made;
  }();
  one.refuses = false;
  one.repeats = 0;
  return one;
}

struct Work {
  int calls = 0;
  std::vector<Tensor> operator()() {
    ++calls;
    return {Tensor::zeros({1}, DType::f32, kCounting)};
  }
};

TEST(Repeated, RunsThenRecordsThenRepeats) {
  const CountingEngine& e = engine();
  Repeated steps;
  Work work;
  const auto run = [&](std::uint64_t key) { return steps.run(kCounting, {key}, std::ref(work)); };
  run(1);
  EXPECT_EQ(work.calls, 1);
  const Tensor recorded = run(1)[0];
  EXPECT_EQ(work.calls, 2);
  EXPECT_EQ(e.repeats, 0);
  EXPECT_EQ(run(1)[0].impl(), recorded.impl());  // the tensors that the recording writes
  EXPECT_EQ(work.calls, 2);
  EXPECT_EQ(e.repeats, 1);
  run(2);  // something else
  EXPECT_EQ(work.calls, 3);
  run(1);
  EXPECT_EQ(e.repeats, 2);
  steps.forget();
  run(1);
  EXPECT_EQ(work.calls, 4);
}

TEST(Repeated, ForgetsWhatWasNotUsedForLongest) {
  const CountingEngine& e = engine();
  Repeated steps;
  Work work;
  const auto run = [&](std::uint64_t key) { steps.run(kCounting, {key}, std::ref(work)); };
  for (std::uint64_t key = 0; key < 8; ++key) {
    run(key);
    run(key);
  }
  run(0);
  EXPECT_EQ(e.repeats, 1);
  run(8);  // instead of 1
  run(0);
  EXPECT_EQ(e.repeats, 2);
  const int before = work.calls;
  run(1);
  EXPECT_EQ(work.calls, before + 1);
  EXPECT_EQ(e.repeats, 2);
}

TEST(Repeated, RunsWhatCannotBeRecordedEveryTime) {
  engine().refuses = true;
  Repeated steps;
  Work work;
  for (int i = 0; i < 4; ++i) steps.run(kCounting, {1}, std::ref(work));
  EXPECT_EQ(work.calls, 4);
  Work on_cpu;
  for (int i = 0; i < 3; ++i) steps.run(Device::cpu, {1}, std::ref(on_cpu));
  EXPECT_EQ(on_cpu.calls, 3);
}

}  // namespace
}  // namespace heddle::backend
