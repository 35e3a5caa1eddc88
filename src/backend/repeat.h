// Work that is done again and again with the same tensors: a step of generation, or of training
// where a step is small. A device that can (Engine::records) takes note of its launches once and
// then repeats them without the host going through the ops; on all others it simply runs.
//
//     Repeated step;                                  // lives with the tensors that it works on
//     results = step.run(device, {addresses…, sizes…}, [&] { return std::vector{f(x)}; });
//
// The key holds everything that makes the work what it is: shapes, and where tensors lie that come
// from outside and may move. Everything else must be the same every time; numbers that change
// (positions, lengths, a seed) are elements of tensors that are overwritten before the call. The
// function may neither read from the device nor bring numbers to it (it then runs as usual, every
// time), nor keep a count on the host: it is not called when its launches are repeated. Versions of
// tensors that it writes are not counted up then either.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "heddle/tensor.h"
#include "tensor/engine.h"

namespace heddle::backend {

// Whether work on the device can be recorded; on meta, on the device that it imitates.
bool can_repeat(Device device);

// For tests: as long as one lives, every device counts as one that can; where nothing is recorded,
// the work simply runs each time.
class RepeatsEverywhere {
 public:
  RepeatsEverywhere();
  ~RepeatsEverywhere();
  RepeatsEverywhere(const RepeatsEverywhere&) = delete;
  RepeatsEverywhere& operator=(const RepeatsEverywhere&) = delete;
};

class Repeated {
 public:
  using Key = std::vector<std::uint64_t>;
  using Work = std::function<std::vector<Tensor>()>;

  // The results of `work`. The second time that a key comes its work is recorded, and from then on
  // the results are the same tensors with new contents.
  std::vector<Tensor> run(Device device, const Key& key, const Work& work);

  void forget() { known_.clear(); }

 private:
  static constexpr std::size_t kMostKeys = 8;  // the one that was not used for longest goes

  struct Known {
    Key key;
    bool recordable = true;
    std::uint64_t last_use = 0;
    std::vector<Tensor> results = {};  // of the recording
    std::unique_ptr<Recording> recording = {};
  };

  Known* find(const Key& key);

  std::vector<Known> known_;
  std::uint64_t uses_ = 0;
};

}  // namespace heddle::backend
