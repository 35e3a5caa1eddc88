#include "heddle/runtime.h"

#include "backend/cpu/detect/detect.h"
#include "backend/cpu/isa.h"
#include "base/parallel.h"

namespace heddle {

std::string cpu_name() { return cpu::processor_name(); }

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::Isa isa : cpu::available_isas()) names.emplace_back(cpu::to_string(isa));
  return names;
}

std::string instruction_set() { return std::string(cpu::to_string(cpu::current_isa())); }
void set_instruction_set(std::string_view name) { cpu::set_isa(cpu::isa_from_name(name)); }

int threads() { return thread_count(); }
void set_threads(int count) { set_thread_count(count); }

}  // namespace heddle
