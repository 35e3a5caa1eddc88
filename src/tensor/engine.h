// The interface of a device on which tensors can live: it holds bytes and moves them. Its
// computations are routines (backend/routine.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/device.h"

namespace heddle {

// A library that a backend opens when the program runs, for people: its version, or why it is not
// there.
struct FoundLibrary {
  std::string name, version, absence;
};

// Work that a device has taken note of: the same launches with the same addresses and numbers.
class Recording {
 public:
  virtual ~Recording() = default;
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual void repeat() = 0;
};

// Addresses are the device's own: only its engine and its routines may dereference them. Requests
// are carried out in the order in which they are made; copies may still be in flight when a call
// returns, until synchronize().
class Engine {
 public:
  virtual ~Engine() = default;

  // Aligned to 64 bytes at least, contents undefined; throws Error(out_of_memory). bytes > 0.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* block, std::size_t bytes) noexcept = 0;

  // `count` times the `width` (1, 2, 4 or 8) bytes at `element`, a host address.
  virtual void fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) = 0;

  // Between host memory and the device. The source of upload() may change once it has returned; the
  // result of download() is there after synchronize().
  virtual void upload(std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  // Whether record() may give a Recording.
  virtual bool records() const noexcept { return false; }
  // Does `work`, and returns what does it again; null: it was done, and no more. Tensors that it
  // made stay where they are as long as the recording or they themselves live. Work that waits for
  // the device or brings numbers to it cannot be recorded: then it is called a second time.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) {
    work();
    return nullptr;
  }

  // Work that is repeated from now on draws its random numbers as of so many steps (RandomKey)
  // after the one that it was recorded in.
  virtual void shift_steps(std::uint32_t /*by*/) {}

  // Hands kept memory back to the system.
  virtual void trim() noexcept {}

  // For people: "NVIDIA H200", and the bytes that its tensors can have in all.
  virtual std::string name() const = 0;
  virtual std::int64_t memory_bytes() const = 0;
  virtual std::vector<FoundLibrary> libraries() const { return {}; }
};

// The engine must outlive every tensor of the device: it is never taken away.
void add_engine(Device device, Engine& engine);

// Why a kind of device is absent, for code that requests one: "this build has no CUDA backend".
void explain_absence(DeviceKind kind, const std::string& reason);

std::string absence_of(DeviceKind kind);  // the reason; empty if none was given

// Throws Error(unsupported) that names the device, says why it is not there and which there are.
Engine& engine_of(Device device);
bool has_engine(Device device);

// The backends of this build add their routines, once for the process. Tensors know nothing of
// backends, so these are declared here and defined in src/backend.
void open_backends();

// The backend of a kind adds the engines of this machine's devices, or explains their absence:
// once, on the first request for one. Querying a driver costs time and memory that a program on the
// CPU alone should not pay.
void find_devices(DeviceKind kind);

// How often anything was read back from a device other than the CPU (each a wait of the host for
// it), since the program began: what a training step must do once.
std::int64_t device_reads() noexcept;

}  // namespace heddle
