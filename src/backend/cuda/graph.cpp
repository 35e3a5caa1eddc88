#include "backend/cuda/graph.h"

#include <new>

#include "backend/cuda/error.h"
#include "heddle/error.h"

namespace heddle::cuda {

NotRecordable::NotRecordable(const char* what)
    : Error(ErrorCode::unsupported, "CUDA", "work that is recorded as a graph needs the host",
            "neither uploads nor reads", what) {}

GraphMemory::~GraphMemory() {
  for (const auto& [block, bytes] : all_) blocks_.release(block, bytes);
}

std::byte* GraphMemory::allocate(std::size_t bytes) {
  std::deque<std::byte*>& idle = idle_[bytes];
  if (!idle.empty() && idle_bytes_ > kIdleBytes) {
    std::byte* const block = idle.front();
    idle.pop_front();
    idle_bytes_ -= bytes;
    return block;
  }
  all_.reserve(all_.size() + 1);
  std::byte* const block = blocks_.allocate(bytes);
  if (block != nullptr) all_.emplace_back(block, bytes);
  return block;
}

void GraphMemory::release(std::byte* block, std::size_t bytes) {
  idle_[bytes].push_back(block);
  idle_bytes_ += bytes;
}

std::byte* GraphBlocks::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (open_ == nullptr) return blocks_.allocate(bytes);
  std::byte* const block = open_->allocate(bytes);
  if (block != nullptr) owners_[block] = open_;
  return block;
}

void GraphBlocks::release(std::byte* block, std::size_t bytes) noexcept {
  std::shared_ptr<GraphMemory> owner;  // destroyed last, when nobody holds the lock
  try {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(block);
    if (found == owners_.end()) return blocks_.release(block, bytes);
    owner = std::move(found->second);
    owners_.erase(found);
    owner->release(block, bytes);
  } catch (const std::bad_alloc&) {
    // No memory to remember it by: the block stays in use as long as its graph.
  }
}

std::shared_ptr<GraphMemory> GraphBlocks::begin() {
  const std::lock_guard lock(mutex_);
  open_ = std::make_shared<GraphMemory>(blocks_);
  return open_;
}

void GraphBlocks::end() {
  const std::lock_guard lock(mutex_);
  open_ = nullptr;
}

bool GraphBlocks::recording() const {
  const std::lock_guard lock(mutex_);
  return open_ != nullptr;
}

namespace {

class Graph final : public Recording {
 public:
  Graph(cudaGraphExec_t graph, std::function<cudaStream_t()> stream,
        std::shared_ptr<GraphMemory> memory)
      : graph_(graph), stream_(std::move(stream)), memory_(std::move(memory)) {}
  // The device may still be at it: destruction waits, and its memory is reused in stream order. At
  // the end of the process CUDA may have gone first.
  ~Graph() override {
    int device = 0;
    if (cudaGetDevice(&device) == cudaSuccess) (void)cudaGraphExecDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void repeat() override { HEDDLE_CUDA_CHECK(cudaGraphLaunch(graph_, stream_())); }

 private:
  cudaGraphExec_t graph_;
  std::function<cudaStream_t()> stream_;
  std::shared_ptr<GraphMemory> memory_;
};

// A captured graph, or null. It has memory of its own for as long as it is open.
class Capture {
 public:
  Capture(GraphBlocks& blocks, cudaStream_t stream)
      : blocks_(blocks), stream_(stream), memory_(blocks.begin()) {
    // Relaxed: blocks may have to be taken from the driver on the way.
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess) return;
    (void)cudaGetLastError();
    blocks.end();
    open_ = false;
  }
  ~Capture() {
    if (open_) discard();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  bool open() const { return open_; }
  std::shared_ptr<GraphMemory> memory() const { return memory_; }

  cudaGraphExec_t end() {
    cudaGraph_t graph = take();
    if (graph == nullptr) return nullptr;
    cudaGraphExec_t executable = nullptr;
    if (cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess) executable = nullptr;
    (void)cudaGetLastError();
    (void)cudaGraphDestroy(graph);
    return executable;
  }

  void discard() {
    cudaGraph_t const graph = take();
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }

 private:
  cudaGraph_t take() {
    open_ = false;
    blocks_.end();
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) != cudaSuccess) graph = nullptr;
    (void)cudaGetLastError();
    return graph;
  }

  GraphBlocks& blocks_;
  cudaStream_t stream_;
  std::shared_ptr<GraphMemory> memory_;
  bool open_ = true;
};

}  // namespace

std::unique_ptr<Recording> record_graph(GraphBlocks& blocks,
                                        const std::function<cudaStream_t()>& stream,
                                        const std::function<void()>& work) {
  cudaGraphExec_t executable = nullptr;
  std::shared_ptr<GraphMemory> memory;
  {
    Capture capture(blocks, stream());
    if (capture.open()) {
      try {
        work();
        (void)stream();  // nothing is held back any more
        memory = capture.memory();
        executable = capture.end();
      } catch (const NotRecordable&) {
        capture.discard();
      } catch (const Error& e) {
        // A recording keeps memory of its own; without it the work may still fit.
        if (e.code() != ErrorCode::out_of_memory) throw;
        capture.discard();
      }
    }
  }
  if (executable == nullptr) {
    work();
    return nullptr;
  }
  auto graph = std::make_unique<Graph>(executable, stream, std::move(memory));
  graph->repeat();  // recording is not doing
  return graph;
}

}  // namespace heddle::cuda
