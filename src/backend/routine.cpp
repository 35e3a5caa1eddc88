#include "backend/routine.h"

#include <map>
#include <mutex>

#include "backend/cpu/routines.h"
#include "backend/cuda/cuda.h"

namespace heddle {

void open_backends() {
  static const bool opened = [] {
    cpu::add_routines();
    cuda::open();  // the meta device plans like a GPU wherever it runs
    explain_absence(DeviceKind::plugin, "the program has brought no backend of its own");
    return true;
  }();
  (void)opened;
}

void find_devices(DeviceKind kind) {
  open_backends();
  if (kind != DeviceKind::cuda) return;
  static const bool found = (cuda::find_devices(), true);
  (void)found;
}

namespace backend {

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
  open_backends();
  const std::lock_guard lock(calls_mutex);
  std::vector<KnownCall> all;
  all.reserve(calls().size());
  for (const auto& [name, call] : calls()) all.push_back(call);
  return all;
}

}  // namespace backend
}  // namespace heddle
