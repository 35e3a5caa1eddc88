#include "backend/repeat.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/routine.h"

namespace heddle::backend {

namespace {

std::atomic<int> everywhere = 0;  // how many RepeatsEverywhere live

}  // namespace

RepeatsEverywhere::RepeatsEverywhere() { ++everywhere; }
RepeatsEverywhere::~RepeatsEverywhere() { --everywhere; }

bool can_repeat(Device device) {
  if (everywhere > 0) return true;
  if (device.is_meta()) return device.like == DeviceKind::cuda;
  return !device.is_cpu() && engine_of(device).records();
}

Repeated::Known* Repeated::find(const Key& key) {
  const auto found = std::ranges::find(known_, key, &Known::key);
  return found == known_.end() ? nullptr : &*found;
}

// The first time everything that is made once and kept (weights in another type, plans of a
// library) is made: a recording must not make it again.
std::vector<Tensor> Repeated::run(Device device, const Key& key, const Work& work) {
  if (device.is_meta() || device.is_cpu() || !can_repeat(device)) return work();
  ++uses_;
  Known* const known = find(key);
  if (known == nullptr) {
    if (known_.size() == kMostKeys)
      known_.erase(std::ranges::min_element(known_, {}, &Known::last_use));
    std::vector<Tensor> results = work();
    known_.push_back({.key = key, .last_use = uses_});
    return results;
  }
  known->last_use = uses_;
  if (known->recording != nullptr) {
    known->recording->repeat();
    return known->results;
  }
  if (!known->recordable) return work();
  std::vector<Tensor> results;
  known->recording = engine_of(device).record([&] { results = work(); });
  known->recordable = known->recording != nullptr;
  if (known->recordable) known->results = results;
  return results;
}

}  // namespace heddle::backend
