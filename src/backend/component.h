// A backend that is a library of its own: programs that do not want its devices do not carry it.
#pragma once

namespace heddle::backend {

struct Component {
  void (*open)();          // adds the routines; asks no driver
  void (*find_devices)();  // adds the engines of this machine's devices, or explains their absence
};

}  // namespace heddle::backend

// The library heddle_cuda defines it. It is a constant that the linker is asked for by name (code
// that links heddle::cuda passes `-u heddle_cuda_component`, cmake/cuda.cmake), not an object that
// registers itself before main(): the linker would drop that from an archive, and a tensor in a
// global variable could be constructed before it.
extern "C" const heddle::backend::Component heddle_cuda_component;
