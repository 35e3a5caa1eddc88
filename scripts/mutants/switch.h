// Included by every file that has mutants in it: which one is on (HEDDLE_MUTANT=17), and which ones
// are reached (HEDDLE_MUTANT_COVERAGE=file, a byte per mutant, shared by all processes of a test so
// that those which are killed leave their marks as well).
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <type_traits>
#include <utility>

namespace heddle_mutants {

inline constexpr int kMost = 1 << 16;

inline volatile unsigned char* open_marks() {
  if (const char* path = ::getenv("HEDDLE_MUTANT_COVERAGE")) {
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0 && ::ftruncate(file, kMost) == 0) {
      void* memory = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      ::close(file);
      if (memory != MAP_FAILED) return static_cast<unsigned char*>(memory);
    }
  }
  return nullptr;
}

// Functions, not variables: another file's initialiser may come first.
inline int chosen() {
  static const int id = [] {
    const char* text = ::getenv("HEDDLE_MUTANT");
    return text != nullptr ? ::atoi(text) : -1;
  }();
  return id;
}

inline volatile unsigned char* marks() {
  static volatile unsigned char* const memory = open_marks();
  return memory;
}

inline bool on(int id) {
  if (volatile unsigned char* all = marks(); all != nullptr && all[id] == 0) all[id] = 1;
  return chosen() == id;
}

// A value, or its type's own default where the mutant is on.
template <class T>
  requires(!std::is_reference_v<T>)
T value(int id, T&& given) {
  if (on(id)) return T{};
  return std::forward<T>(given);
}

template <class T>
const T& value(int id, const T& given) {
  static const T none{};
  return on(id) ? none : given;
}

}  // namespace heddle_mutants
