// A backend that is a library of its own: programs that do not want its devices do not carry it.
#pragma once

namespace heddle::backend {

struct Component {
  void (*open)();          // adds the routines; asks no driver
  void (*find_devices)();  // adds the engines of this machine's devices, or explains their absence
};

}  // namespace heddle::backend

// The library heddle_cuda defines it. It is a constant that the linker is asked for by name
// (whoever links heddle::cuda says `-u heddle_cuda_component`, cmake/cuda.cmake), not something
// that registers itself before main(): of an archive the linker would drop that, and a tensor in a
// global variable could come before it.
extern "C" const heddle::backend::Component heddle_cuda_component;
