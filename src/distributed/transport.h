// Carries bytes between the ranks of a run. One operation is enough: every rank gives each of the
// others a buffer. What is made of it (communicator.h) is the same over every engine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heddle/error.h"

namespace heddle::distributed {

// Other ranks are gone, or silent, or cannot be reached.
class RankLost : public Error {
 public:
  using Error::Error;
};

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string engine() const = 0;  // "Open MPI 4.1.4"

  // Buffer i is for, or from, rank i; those of the rank itself and empty ones are left out. Both
  // ends must agree on sizes. One exchange at a time; buffers must stay until it is done.
  virtual void begin(std::span<const Bytes> sends, std::span<const MutableBytes> receives) = 0;
  virtual bool test() = 0;                              // goes on with it; whether it is done
  virtual const std::vector<int>& awaited() const = 0;  // ranks that it waits for
  // After the last exchange, where all ranks came to their end: leaves in order.
  virtual void leave() {}
};

}  // namespace heddle::distributed
