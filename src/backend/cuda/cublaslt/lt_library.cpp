#include "backend/cuda/cublaslt/lt_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "language/language.h"

namespace heddle::cuda::lt {

namespace {

struct Opened {
  Library library{};
  bool there = false;
  std::string absence;
};

// By name, where the system's linker looks, and then where CUDA is installed by default.
void* open_file() {
  for (const char* folder : {"", "/usr/local/cuda/lib64/"})
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
      if (void* file = dlopen((std::string(folder) + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return file;
  return nullptr;
}

template <class F>
bool find(void* file, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(file, name));
  return function != nullptr;
}

bool find_all(void* file, Library& l) {
  return find(file, "cublasLtCreate", l.create) && find(file, "cublasLtGetVersion", l.version) &&
         find(file, "cublasLtMatmulDescCreate", l.operation_create) &&
         find(file, "cublasLtMatmulDescSetAttribute", l.operation_set) &&
         find(file, "cublasLtMatrixLayoutCreate", l.layout_create) &&
         find(file, "cublasLtMatmulPreferenceCreate", l.preference_create) &&
         find(file, "cublasLtMatmulPreferenceSetAttribute", l.preference_set) &&
         find(file, "cublasLtMatmulPreferenceDestroy", l.preference_destroy) &&
         find(file, "cublasLtMatmulAlgoGetHeuristic", l.heuristic) &&
         find(file, "cublasLtMatmulAlgoConfigGetAttribute", l.algorithm_get) &&
         find(file, "cublasLtMatmul", l.multiply);
}

Opened opened_library() {
  Opened o;
  const char* const setting = std::getenv("HEDDLE_CUBLASLT");
  if (setting != nullptr && std::string_view(setting) == "off") {
    o.absence = mark("HEDDLE_CUBLASLT is off");
    return o;
  }
  void* const file = open_file();
  if (file == nullptr)
    o.absence = mark("libcublasLt.so.13 and libcublasLt.so.12 were not found");
  else if (!find_all(file, o.library))
    o.absence = mark("libcublasLt lacks functions that Heddle calls");
  else
    o.there = true;
  return o;
}

const Opened& opened() {
  static const Opened once = opened_library();
  return once;
}

}  // namespace

const Library* library() { return opened().there ? &opened().library : nullptr; }
const std::string& absence() { return opened().absence; }

}  // namespace heddle::cuda::lt
