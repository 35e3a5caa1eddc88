// From the call of an op to the routine that a device has for it.
//
// An op's .cpp checks arguments, makes outputs, knows the gradient, and hands over a call: a struct
// of tensors and numbers with nothing of any device in it (src/ops/<op>/<op>.call.h). Each backend
// plans its own workspace for the call and runs it (<op>.cpu.cpp). An op without a routine on a
// device is computed by its reference there, from ops that have one.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "backend/meta/cost.h"
#include "heddle/cost.h"
#include "heddle/error.h"
#include "heddle/tensor.h"
#include "tensor/engine.h"

namespace heddle::backend {

// The CPU's routines of gradients and optimisers, a quarter of its kernels, are added apart from
// the others: by the first Tape, and by the first call of an op that is itself a step of training.
// Nothing else names them, so that the linker leaves them out of a program that does neither. An
// entry of `routines` that is written here is read by nobody before.
void open_training();

// Which calls there are and on which kinds of devices they have routines, for people to see
// (heddle info --ops).
struct KnownCall {
  std::string name;
  bool on[kDeviceKinds] = {};
};
std::vector<KnownCall> known_calls();  // by name
void note_call(const char* name, DeviceKind kind, bool has_routine);

// `plan` (it may be missing) makes workspace in the call, on the call's device. It is called on the
// meta device as well, so that the plan of a run counts what the run will take.
template <class Call>
struct Routine {
  void (*run)(Call& call) = nullptr;
  void (*plan)(Call& call) = nullptr;
};

// By kind of device. Written while backends or training open and never again.
template <class Call>
inline constinit Routine<Call> routines[kDeviceKinds] = {};

template <class Call>
void add_routine(DeviceKind kind, const Routine<Call>& routine) {
  note_call(Call::kName, kind, routine.run != nullptr);
  routines<Call>[static_cast<int>(kind)] = routine;
}

// A call that is itself a step of training (static constexpr bool kOfTraining) may come without a
// tape; a gradient's cannot.
template <class Call>
void open_for() {
  if constexpr (requires { Call::kOfTraining; })
    open_training();
  else
    open_backends();
}

template <class Call>
const Routine<Call>& routine_of(Device device) {
  static const bool opened = (open_for<Call>(), true);  // at the first call
  (void)opened;
  return routines<Call>[static_cast<int>(device.like)];  // meta: the kind it imitates
}

// Whether the device has a routine of its own for the call.
template <class Call>
bool has_routine(Device device) {
  return routine_of<Call>(device).run != nullptr;
}

// Books what the call costs, a group of pieces each on its own; true when it is to run.
template <class Call>
bool charge(Device device, const Call& call) {
  if constexpr (requires { call.charge(device); })
    return call.charge(device);
  else
    return meta::charge(device, call.cost());
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
  if (charge(device, call)) routine.run(call);
}

// Helpers for the cost of calls.
inline double bytes_of(const Tensor& x) { return static_cast<double>(x.bytes()); }
inline double bytes_or_none(const Tensor& x) { return x.defined() ? bytes_of(x) : 0; }
inline double count_of(const Tensor& x) { return static_cast<double>(x.elements()); }

}  // namespace heddle::backend
