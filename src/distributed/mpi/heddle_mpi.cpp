// The plug-in over MPI: the only file that knows it. Built as a library of its own and opened by
// distributed/open_transport.cpp; it uses nothing else of Heddle.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

#include "distributed/plugin.h"

namespace {

// A group of our own, so that no message of anybody else is taken for ours.
MPI_Comm group = MPI_COMM_NULL;
int own_rank = 0, ranks = 1;
constexpr int kTag = 1;

struct Request {
  MPI_Request request;
  int peer;
};
std::vector<Request> requests;

void say(char* error, std::size_t room, const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  std::snprintf(error, room, "%s: %s", what, code == MPI_SUCCESS ? "not possible" : text);
}

int join(int* rank, int* size, char* error, std::size_t room) {
  int given = 0, running = 0;
  MPI_Initialized(&running);
  if (running == 0)
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
        code != MPI_SUCCESS) {
      say(error, room, "MPI_Init_thread", code);
      return 1;
    }
  // Errors come back as numbers instead of ending the process.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &group); code != MPI_SUCCESS) {
    say(error, room, "MPI_Comm_dup", code);
    return 1;
  }
  MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  MPI_Comm_rank(group, &own_rank);
  MPI_Comm_size(group, &ranks);
  *rank = own_rank;
  *size = ranks;
  return 0;
}

// MPI counts in int.
template <class Begin>
int in_pieces(const HeddleBuffer& buffer, int peer, const Begin& begin) {
  auto* bytes = static_cast<char*>(buffer.bytes);
  for (std::size_t at = 0; at < buffer.size;) {
    const std::size_t count = std::min<std::size_t>(buffer.size - at, INT_MAX / 2);
    Request r{MPI_REQUEST_NULL, peer};
    if (const int code = begin(bytes + at, static_cast<int>(count), &r.request);
        code != MPI_SUCCESS)
      return code;
    requests.push_back(r);
    at += count;
  }
  return MPI_SUCCESS;
}

int begin(const HeddleBuffer* sends, const HeddleBuffer* receives, char* error, std::size_t room) {
  requests.clear();
  for (int i = 1; i < ranks; ++i) {
    const int from = (own_rank + ranks - i) % ranks;
    const int code = in_pieces(receives[from], from, [from](char* at, int n, MPI_Request* r) {
      return MPI_Irecv(at, n, MPI_BYTE, from, kTag, group, r);
    });
    if (code != MPI_SUCCESS) {
      say(error, room, "MPI_Irecv", code);
      return 1;
    }
  }
  for (int i = 1; i < ranks; ++i) {
    const int to = (own_rank + i) % ranks;
    const int code = in_pieces(sends[to], to, [to](char* at, int n, MPI_Request* r) {
      return MPI_Isend(at, n, MPI_BYTE, to, kTag, group, r);
    });
    if (code != MPI_SUCCESS) {
      say(error, room, "MPI_Isend", code);
      return 1;
    }
  }
  return 0;
}

int test(int* done, unsigned char* awaited, char* error, std::size_t room) {
  std::memset(awaited, 0, static_cast<std::size_t>(ranks));
  *done = 1;
  for (Request& r : requests) {
    int finished = 0;
    if (const int code = MPI_Test(&r.request, &finished, MPI_STATUS_IGNORE); code != MPI_SUCCESS) {
      say(error, room, "MPI_Test", code);
      return 1;
    }
    if (finished != 0) continue;
    *done = 0;
    awaited[r.peer] = 1;
  }
  return 0;
}

int leave(char* error, std::size_t room) {
  MPI_Comm_free(&group);
  if (const int code = MPI_Finalize(); code != MPI_SUCCESS) {
    say(error, room, "MPI_Finalize", code);
    return 1;
  }
  return 0;
}

const char* engine() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
  // Open MPI tells of its package as well, behind a comma.
  if (char* end = std::strpbrk(text, ",\n"); end != nullptr) *end = '\0';
  return text;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HeddleTransport* heddle_transport() {
  static const HeddleTransport transport = {
      kHeddleTransportVersion, engine(), join, begin, test, leave};
  return &transport;
}
