// From the call of an op to the routine that a device has for it.
//
// An op's .cpp checks arguments, makes outputs, knows the gradient, and hands over a call: a struct
// of tensors and numbers with nothing of any device in it (src/ops/<op>/<op>.call.h). Each backend
// plans its own workspace for the call and runs it (<op>.cpu.cpp). What an op has no routine for on
// a device is computed by its reference there, from ops that have one.
#pragma once

#include <type_traits>

#include "backend/meta/cost.h"
#include "heddle/cost.h"
#include "heddle/error.h"
#include "heddle/tensor.h"

namespace heddle::backend {

// `plan` (it may be missing) makes workspace in the call, on the call's device. It is called on the
// meta device as well, so that the plan of a run counts what the run will take.
template <class Call>
struct Routine {
  void (*run)(Call& call) = nullptr;
  void (*plan)(Call& call) = nullptr;
};

// By device. Written while backends open and never again.
template <class Call>
inline constinit Routine<Call> routines[kDeviceCount] = {};

template <class Call>
void add_routine(Device device, const Routine<Call>& routine) {
  routines<Call>[static_cast<int>(device)] = routine;
}

// The backends of this build add their routines. Once for the process, at the first call.
bool open_backends();

template <class Call>
const Routine<Call>& routine_of(Device device) {
  static const bool opened = open_backends();
  (void)opened;
  const Device computes = device == Device::meta ? Device::cpu : device;  // what meta imitates
  return routines<Call>[static_cast<int>(computes)];
}

// Whether the device has a routine of its own for the call.
template <class Call>
bool has_routine(Device device) {
  return routine_of<Call>(device).run != nullptr;
}

// Plans, books the cost, and runs unless the device only plans. A call is made for its launch: the
// plan writes workspace into it.
template <class Call>
  requires(!std::is_reference_v<Call>)
void launch(Call&& call) {
  const Device device = call.output().device();
  const Routine<Call>& routine = routine_of<Call>(device);
  if (routine.run == nullptr)
    fail(ErrorCode::unsupported, Call::kName, "has no routine on this device", "another device",
         to_string(device));
  if (routine.plan != nullptr) routine.plan(call);
  if (meta::charge(device, call.cost())) routine.run(call);
}

// What calls compute their cost from.
inline double bytes_of(const Tensor& x) { return static_cast<double>(x.bytes()); }
inline double bytes_or_none(const Tensor& x) { return x.defined() ? bytes_of(x) : 0; }
inline double count_of(const Tensor& x) { return static_cast<double>(x.elements()); }

}  // namespace heddle::backend
