// A GPU as a device of Heddle: its memory, and the one stream on which everything happens in order.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <mutex>
#include <string>
#include <vector>

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
  void trim() noexcept override;
  std::string name() const override { return name_; }
  std::int64_t memory_bytes() const override { return memory_bytes_; }
  std::vector<FoundLibrary> libraries() const override;

  // Makes the device the current one of this thread.
  cudaStream_t stream();

 private:
  void make_current() const;

  int index_;
  std::string name_;
  std::int64_t memory_bytes_;
  DeviceBlocks blocks_{kGpuMemory};
  std::mutex mutex_;  // of what follows
  cudaStream_t stream_ = nullptr;
  Staging staging_;
};

// The stream of a tensor's device, which becomes the current one of this thread: for routines.
cudaStream_t stream_of(Device device);

}  // namespace heddle::cuda
