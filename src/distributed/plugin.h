// What a plug-in offers that carries bytes between the ranks of a run: a library of its own, opened
// when a run has more than one rank, so that the program itself links no MPI. Plain C types, and a
// number that changes with them: a plug-in of another build is refused by its number.
#pragma once

#include <cstddef>

extern "C" {

struct HeddleBuffer {
  void* bytes;
  std::size_t size;
};

struct HeddleTransport {
  unsigned version;    // kHeddleTransportVersion
  const char* engine;  // "Open MPI 4.1.4"
  // Functions give 0, or another number and a sentence in `error`, which has room for `room` bytes.
  // Joins the others, and says who this one is.
  int (*join)(int* rank, int* size, char* error, std::size_t room);
  // Begins to send a buffer to each rank and to receive one from each; those of size 0, and that of
  // the rank itself, are left out. The buffers stay where they are until test() says done.
  int (*begin)(const HeddleBuffer* sends, const HeddleBuffer* receives, char* error,
               std::size_t room);
  // Goes on with it. `awaited` has a byte for each rank: 1 where something is still to be sent or
  // received.
  int (*test)(int* done, unsigned char* awaited, char* error, std::size_t room);
  // Leaves in order. All ranks must.
  int (*leave)(char* error, std::size_t room);
};

// The one symbol of a plug-in.
using HeddleTransportFunction = const HeddleTransport* (*)();
}

inline constexpr unsigned kHeddleTransportVersion = 1;
inline constexpr const char* kHeddleTransportSymbol = "heddle_transport";
