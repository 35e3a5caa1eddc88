// Work as a graph of CUDA: recorded once, launched as a whole from then on. A launch of the host
// takes 4.5 µs; in a graph a kernel takes less than one.
//
//     auto recording = engine.record([&] { step(); });   // null: done, but not recordable
//     if (recording) recording->repeat();
//
// Everybody above goes by backend::Repeated (backend/repeat.h), which knows when.
//
// A graph holds addresses. So what is allocated while one is recorded stays out of everybody's
// hands until the graph is gone, and what comes from outside must stay where it is: its owner keeps
// it, and makes a new recording where it moves. Numbers that change from one time to the next are
// in the memory of the device, and are written there before the graph is launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "tensor/device_blocks.h"
#include "tensor/engine.h"

namespace heddle::cuda {

// Thrown out of work that cannot be recorded: it needs the host while it runs.
class NotRecordable : public Error {
 public:
  explicit NotRecordable(const char* what);
};

// The blocks of one graph. Those that the work has released are used again only when many lie
// idle: kernels that are launched together want what they read and write to be apart.
class GraphMemory {
 public:
  explicit GraphMemory(DeviceBlocks& blocks) : blocks_(blocks) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::byte* allocate(std::size_t bytes);
  void release(std::byte* block, std::size_t bytes);

 private:
  static constexpr std::size_t kIdleBytes = std::size_t{64} << 20;

  DeviceBlocks& blocks_;
  std::vector<std::pair<std::byte*, std::size_t>> all_;
  std::map<std::size_t, std::deque<std::byte*>> idle_;  // by size, the oldest first
  std::size_t idle_bytes_ = 0;
};

// A device's blocks, those of graphs among them.
class GraphBlocks {
 public:
  explicit GraphBlocks(DeviceBlocks& blocks) : blocks_(blocks) {}

  std::byte* allocate(std::size_t bytes);  // nullptr when the device refuses
  void release(std::byte* block, std::size_t bytes) noexcept;

  // From begin() to end() blocks belong to the graph that is recorded.
  std::shared_ptr<GraphMemory> begin();
  void end();
  bool recording() const;

 private:
  DeviceBlocks& blocks_;
  mutable std::mutex mutex_;
  std::shared_ptr<GraphMemory> open_;
  std::map<std::byte*, std::shared_ptr<GraphMemory>> owners_;  // of blocks in use
};

// stream: of the device, with nothing held back.
std::unique_ptr<Recording> record_graph(GraphBlocks& blocks,
                                        const std::function<cudaStream_t()>& stream,
                                        const std::function<void()>& work);

}  // namespace heddle::cuda
