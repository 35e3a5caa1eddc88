// A GPU as a device of Heddle: its memory, and the one stream on which everything happens in order.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/graph.h"
#include "backend/cuda/held.h"
#include "tensor/device_blocks.h"
#include "tensor/engine.h"

namespace heddle::cuda {

// Pinned host memory through which bytes travel, since only copies from pinned memory can overlap
// with the host's work.
class Staging {
 public:
  void upload(std::byte* to, const void* from, std::size_t bytes, cudaStream_t stream);
  void download(void* to, const std::byte* from, std::size_t bytes, cudaStream_t stream);
  void arrived();  // after the stream was synchronized: downloads go to their destinations

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  static constexpr std::size_t kPieces = 8;

  struct Arrival {
    void* to;
    const std::byte* from;
    std::size_t bytes;
  };

  void open();

  std::byte* pieces_ = nullptr;  // kPieces of them in turn, on their way to the device
  std::array<cudaEvent_t, kPieces> passed_{};  // the device has read the piece
  std::size_t next_ = 0;
  std::byte* small_ = nullptr;  // kPiece bytes, on their way to the host
  std::size_t small_used_ = 0;
  std::vector<Arrival> arrivals_;
};

extern const RegionSource kGpuMemory;  // of the device that is current

class CudaEngine final : public Engine {
 public:
  CudaEngine(int index, std::string name, std::int64_t memory_bytes)
      : index_(index), name_(std::move(name)), memory_bytes_(memory_bytes) {}

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* block, std::size_t bytes) noexcept override;
  void fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) override;
  void upload(std::byte* to, const void* from, std::size_t bytes) override;
  void download(void* to, const std::byte* from, std::size_t bytes) override;
  void synchronize() override;
  bool records() const noexcept override { return true; }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  void shift_steps(std::uint32_t by) override;
  void trim() noexcept override;
  std::string name() const override { return name_; }
  std::int64_t memory_bytes() const override { return memory_bytes_; }
  std::vector<FoundLibrary> libraries() const override;

  // Makes the device the current one of this thread. Work that was held back goes first.
  cudaStream_t stream();
  // kCounters numbers that are zero between kernels: who counts leaves zeros behind.
  std::uint32_t* counters();
  static constexpr std::size_t kCounters = std::size_t{1} << 16;
  // For work that may be held back, and what is launched together with it.
  HeldBack held();
  // A number of the device's that kernels add to the step of a RandomKey: 0, but in work that is
  // repeated.
  const std::uint32_t* later_steps();

 private:
  void make_current() const;
  cudaStream_t open_stream();
  void refuse_in_recording(const char* what) const;

  int index_;
  std::string name_;
  std::int64_t memory_bytes_;
  DeviceBlocks blocks_{kGpuMemory};
  GraphBlocks graph_blocks_{blocks_};
  std::mutex mutex_;  // of what follows
  cudaStream_t stream_ = nullptr;
  std::uint32_t* counters_ = nullptr;
  Staging staging_;
  std::uint32_t* later_steps_ = nullptr;
  std::uint32_t shift_ = 0;  // what it holds
  std::mutex held_mutex_;    // of what follows
  HeldWork held_;
};

// The stream of a tensor's device, which becomes the current one of this thread: for routines.
cudaStream_t stream_of(Device device);
const std::uint32_t* later_steps_of(Device device);
// ... and what it holds back: for work that may wait for what comes next.
HeldBack held_of(Device device);
std::uint32_t* counters_of(Device device);

}  // namespace heddle::cuda
