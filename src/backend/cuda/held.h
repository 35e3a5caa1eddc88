// Work of a few rows that waits for what comes next: one kernel may do both. The steps of
// generation are a hundred small ops in a row, each a norm, a product, a gate, a rotation or a row
// for a cache, and a kernel of its own for each takes longer to start than to run.
//
// A routine that may wait takes held_of(device) instead of stream_of(device), and hands its work to
// it. Whatever else happens on the device asks for the stream, and so lets go what was held back
// before: the order of everything is that of the calls. Everything that a held call writes is
// written, whichever kernel does it, with the same bits; calls whose memory overlaps are not
// joined.
// In guard mode none are: memory that is handed out is written first, which asks for the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "backend/cuda/products/few_rows.h"

namespace heddle::cuda {

// Launches a call that is held back by its own kernel.
using PlainLaunch = std::function<void(cudaStream_t)>;

// The rotation of one token of each sequence, [B, H, D], to a dense y.
struct FewRope {
  int batch = 0, heads = 0, width = 0, pairs = 0, positions = 0;
  std::int64_t batch_stride = 0, head_stride = 0;
  bool interleaved = false;
  const float* cos = nullptr;
  const float* sin = nullptr;
  const std::int32_t* at = nullptr;  // the position of all
  const bf16* x = nullptr;
  bf16* y = nullptr;
  PlainLaunch plain = {};
};

// A row of `width` elements for each sequence, to row at[0] of its ring.
struct FewPut {
  int batch = 0, width = 0, rows = 0;
  std::int64_t batch_stride = 0, ring_batch_stride = 0, ring_row_stride = 0;
  const std::int32_t* at = nullptr;
  const bf16* x = nullptr;
  bf16* ring = nullptr;
  PlainLaunch plain = {};
};

// The step before the attention of one token: queries and keys are turned (or neither), keys and
// values go to the cache.
struct FewStep {
  int ropes = 0, puts = 0;
  std::array<FewRope, 2> rope = {};
  std::array<FewPut, 2> put = {};
};

// Memory that a call reads or writes.
struct Extent {
  const void* data = nullptr;
  std::int64_t bytes = 0;

  bool meets(const Extent& other) const;
};

class HeldWork {
 public:
  void let_go(cudaStream_t stream);  // everything is launched

  void hold(const FewNorm& norm, cudaStream_t stream);
  void hold(const FewRope& rope, cudaStream_t stream);
  void hold(const FewPut& put, cudaStream_t stream);
  // Together with the norm that makes its x, if that is what is held; it may itself wait for its
  // gate.
  void run(const FewProduct& product, cudaStream_t stream);
  // gated[m, f] = f(gate)·up. False, and everything is launched: the halves of a product that is
  // held back were something else.
  bool gate(const FewProduct& how, const bf16* gate, cudaStream_t stream);
  // The step that puts keys and values into these rings and leaves its queries at q; it is the
  // caller's from now on. None, and everything is launched: what is held back is something else.
  std::optional<FewStep> take_step(const bf16* q, const bf16* keys, const bf16* values,
                                   cudaStream_t stream);
  void put_back(FewStep step);  // nothing was launched in between

 private:
  enum class Kind : std::uint8_t { none, norm, product, step };

  Kind kind_ = Kind::none;
  FewNorm norm_;
  FewProduct product_;
  FewStep step_;
};

// A device's held work, for as long as this lives.
struct HeldBack {
  std::unique_lock<std::mutex> lock;
  HeldWork& work;
  cudaStream_t stream;
};

}  // namespace heddle::cuda
