// Instruction set and threads as they were, for code that tries others.
#pragma once

#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"

namespace heddle::cpu {

// Puts both back at the end of the scope.
class SettingsScope {
 public:
  SettingsScope() : isa_(current_isa()), threads_(thread_count()) {}
  ~SettingsScope() {
    set_isa(isa_);
    set_threads(threads_);
  }
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;

 private:
  Isa isa_;
  int threads_;
};

}  // namespace heddle::cpu
