#include "backend/routine.h"

#include <map>
#include <mutex>
#include <string>

#include "backend/component.h"
#include "backend/cpu/routines.h"
#include "language/language.h"

// Null in a program that was linked without heddle_cuda.
// NOLINTNEXTLINE(readability-redundant-declaration): here, and only here, the reference is weak
extern "C" [[gnu::weak]] const heddle::backend::Component heddle_cuda_component;

namespace heddle {

namespace {

// HEDDLE_HAS_CUDA: whether this build has made heddle_cuda, for programs to link.
std::string absence_of_cuda() {
  if constexpr (HEDDLE_HAS_CUDA != 0)
    return mark(
        "this program was linked without heddle::cuda, the library for GPUs: link it too "
        "(find_package(heddle COMPONENTS cuda), or pkg-config heddle-cuda)");
  return mark("this build has no CUDA backend");
}

void find_gpus() {
  if (&heddle_cuda_component != nullptr)
    heddle_cuda_component.find_devices();
  else
    explain_absence(DeviceKind::cuda, absence_of_cuda());
}

}  // namespace

void open_backends() {
  static const bool opened = [] {
    cpu::add_routines();
    // The meta device plans like a GPU wherever it runs.
    if (&heddle_cuda_component != nullptr) heddle_cuda_component.open();
    explain_absence(DeviceKind::plugin, "the program has brought no backend of its own");
    return true;
  }();
  (void)opened;
}

void find_devices(DeviceKind kind) {
  open_backends();
  if (kind != DeviceKind::cuda) return;
  static const bool found = (find_gpus(), true);
  (void)found;
}

namespace backend {

void open_training() {
  static const bool opened = (open_backends(), cpu::add_training_routines(), true);
  (void)opened;
}

namespace {

std::mutex calls_mutex;

std::map<std::string, KnownCall>& calls() {
  static std::map<std::string, KnownCall> all;
  return all;
}

}  // namespace

void note_call(const char* name, DeviceKind kind, bool has_routine) {
  const std::lock_guard lock(calls_mutex);
  KnownCall& call = calls()[name];
  call.name = name;
  call.on[static_cast<int>(kind)] = has_routine;
}

std::vector<KnownCall> known_calls() {
  open_training();
  const std::lock_guard lock(calls_mutex);
  std::vector<KnownCall> all;
  all.reserve(calls().size());
  for (const auto& [name, call] : calls()) all.push_back(call);
  return all;
}

}  // namespace backend
}  // namespace heddle
