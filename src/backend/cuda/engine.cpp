#include "backend/cuda/engine.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/cublaslt/lt.h"
#include "backend/cuda/cublaslt/lt_library.h"
#include "backend/cuda/error.h"
#include "backend/cuda/fill.h"
#include "heddle/error.h"
#include "tensor/allocator.h"

namespace heddle::cuda {

namespace {

std::byte* take_region(std::size_t bytes) {
  void* region = nullptr;
  if (cudaMalloc(&region, bytes) == cudaSuccess) return static_cast<std::byte*>(region);
  (void)cudaGetLastError();  // told by the nullptr
  return nullptr;
}

// cudaFree waits for the device, so the region is no longer in use.
void give_back_region(std::byte* region, std::size_t) { (void)cudaFree(region); }

}  // namespace

constinit const RegionSource kGpuMemory = {take_region, give_back_region, nullptr};

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  const std::string_view written = call;
  fail(result == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::failed, "CUDA",
       std::string(written.substr(0, written.find('('))) + " failed", "success",
       std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result));
}

void Staging::open() {
  if (pieces_ != nullptr) return;
  void* memory = nullptr;
  HEDDLE_CUDA_CHECK(cudaHostAlloc(&memory, (kPieces + 1) * kPiece, cudaHostAllocDefault));
  for (cudaEvent_t& event : passed_)
    HEDDLE_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  pieces_ = static_cast<std::byte*>(memory);
  small_ = pieces_ + kPieces * kPiece;
}

void Staging::upload(std::byte* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  open();
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::size_t size = std::min(bytes, kPiece);
    std::byte* const piece = pieces_ + next_ * kPiece;
    HEDDLE_CUDA_CHECK(cudaEventSynchronize(passed_[next_]));  // never recorded: returns at once
    std::memcpy(piece, source, size);
    HEDDLE_CUDA_CHECK(cudaMemcpyAsync(to, piece, size, cudaMemcpyHostToDevice, stream));
    HEDDLE_CUDA_CHECK(cudaEventRecord(passed_[next_], stream));
    next_ = (next_ + 1) % kPieces;
    to += size;
    source += size;
    bytes -= size;
  }
}

void Staging::download(void* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
  open();
  // Large copies are as fast straight into place.
  if (bytes > kPiece - small_used_) {
    HEDDLE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
    return;
  }
  std::byte* const place = small_ + small_used_;
  HEDDLE_CUDA_CHECK(cudaMemcpyAsync(place, from, bytes, cudaMemcpyDeviceToHost, stream));
  arrivals_.push_back({to, place, bytes});
  small_used_ += bytes;
}

void Staging::arrived() {
  for (const Arrival& a : arrivals_) std::memcpy(a.to, a.from, a.bytes);
  arrivals_.clear();
  small_used_ = 0;
}

void CudaEngine::make_current() const {
  static thread_local int current = -1;
  if (current == index_) return;
  HEDDLE_CUDA_CHECK(cudaSetDevice(index_));
  current = index_;
}

cudaStream_t CudaEngine::open_stream() {
  make_current();
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr) return stream_;
  void* zeros = nullptr;
  HEDDLE_CUDA_CHECK(cudaMalloc(&zeros, kCounters * sizeof(std::uint32_t)));
  counters_ = static_cast<std::uint32_t*>(zeros);
  HEDDLE_CUDA_CHECK(cudaMemset(zeros, 0, kCounters * sizeof(std::uint32_t)));
  HEDDLE_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));  // the stream does not wait for it
  HEDDLE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  return stream_;
}

cudaStream_t CudaEngine::stream() {
  cudaStream_t const on = open_stream();
  const std::lock_guard lock(held_mutex_);
  held_.let_go(on);
  return on;
}

std::uint32_t* CudaEngine::counters() {
  (void)open_stream();
  return counters_;
}

HeldBack CudaEngine::held() {
  cudaStream_t const on = open_stream();
  return {std::unique_lock(held_mutex_), held_, on};
}

void CudaEngine::refuse_in_recording(const char* what) const {
  if (graph_blocks_.recording()) throw NotRecordable(what);
}

std::unique_ptr<Recording> CudaEngine::record(const std::function<void()>& work) {
  if (graph_blocks_.recording()) {  // a part of a larger piece of work
    work();
    return nullptr;
  }
  shift_steps(0);  // what is recorded runs once at the end, as of its own step
  return record_graph(graph_blocks_, [this] { return stream(); }, work);
}

const std::uint32_t* CudaEngine::later_steps() {
  if (later_steps_ == nullptr) {
    make_current();
    void* cell = nullptr;
    HEDDLE_CUDA_CHECK(cudaMalloc(&cell, sizeof *later_steps_));
    later_steps_ = static_cast<std::uint32_t*>(cell);
    shift_ = 1;  // anything but 0, which is written now
    shift_steps(0);
  }
  if (shift_ != 0 && !graph_blocks_.recording()) shift_steps(0);
  return later_steps_;
}

void CudaEngine::shift_steps(std::uint32_t by) {
  if (later_steps_ == nullptr || by == shift_) return;  // nobody has drawn any
  upload(reinterpret_cast<std::byte*>(later_steps_), &by, sizeof by);
  shift_ = by;
}

std::byte* CudaEngine::allocate(std::size_t bytes) {
  make_current();
  std::byte* const block = graph_blocks_.allocate(bytes);
  if (block == nullptr) {
    std::size_t free = 0, total = 0;
    HEDDLE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    heddle::fail(ErrorCode::out_of_memory, "cuda:" + std::to_string(index_),
                 name_ + " refused memory", std::to_string(bytes) + " bytes",
                 std::to_string(free) + " bytes free of " + std::to_string(total));
  }
  if (guard_mode_on()) HEDDLE_CUDA_CHECK(cudaMemsetAsync(block, 0xff, bytes, stream()));
  return block;
}

void CudaEngine::release(std::byte* block, std::size_t bytes) noexcept {
  graph_blocks_.release(block, bytes);
}

void CudaEngine::fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) {
  fill_elements(at, count, element, width, stream());
}

void CudaEngine::upload(std::byte* to, const void* from, std::size_t bytes) {
  refuse_in_recording("upload");
  cudaStream_t const on = stream();
  const std::lock_guard lock(mutex_);
  staging_.upload(to, from, bytes, on);
}

void CudaEngine::download(void* to, const std::byte* from, std::size_t bytes) {
  refuse_in_recording("download");
  cudaStream_t const on = stream();
  const std::lock_guard lock(mutex_);
  staging_.download(to, from, bytes, on);
}

void CudaEngine::synchronize() {
  refuse_in_recording("synchronize");
  cudaStream_t const on = stream();
  const std::lock_guard lock(mutex_);
  HEDDLE_CUDA_CHECK(cudaStreamSynchronize(on));
  staging_.arrived();
}

// Work that is held back knows addresses that may go.
void CudaEngine::trim() noexcept {
  try {
    (void)stream();
  } catch (const Error&) {  // the next call that may fail tells of it
  }
  blocks_.trim();
}

std::vector<FoundLibrary> CudaEngine::libraries() const {
  return {{"cuBLASLt", lt_version(), lt::absence()}};
}

cudaStream_t stream_of(Device device) {
  return static_cast<CudaEngine&>(engine_of(device)).stream();
}

std::uint32_t* counters_of(Device device) {
  return static_cast<CudaEngine&>(engine_of(device)).counters();
}

HeldBack held_of(Device device) { return static_cast<CudaEngine&>(engine_of(device)).held(); }

const std::uint32_t* later_steps_of(Device device) {
  return static_cast<CudaEngine&>(engine_of(device)).later_steps();
}

}  // namespace heddle::cuda
