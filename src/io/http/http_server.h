// A small server for one person's browser: one thread, one request a connection, everything
// bounded. It serves the results of a function and knows no files.
//
// Written here instead of taking a library: what it needs of HTTP is a page of code, and libraries
// bring threads, keep-alive, uploads and TLS, all of which would have to be switched off again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/files/descriptor.h"
#include "io/http/http.h"

namespace heddle::io {

class HttpServer {
 public:
  using Clock = std::chrono::steady_clock;
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  // Listens on a numeric address ("127.0.0.1", "::1", "0.0.0.0"); port 0: one that is free. On a
  // loopback address, only requests for its own name are answered: a foreign page whose name was
  // pointed here (DNS rebinding) gets nothing. Throws Error where it cannot listen.
  HttpServer(const std::string& address, std::uint16_t port, Answer answer);

  std::string url() const;  // "http://127.0.0.1:8123/"
  std::uint16_t port() const { return port_; }

  // Serves for so long, or until a signal comes.
  void serve_for(std::chrono::milliseconds time);

 private:
  struct Connection {
    Descriptor socket;
    Clock::time_point until;  // by then it has to be done
    std::string in, out;
    std::size_t sent = 0;
    bool answering = false;
  };

  void accept_all();
  bool advance(Connection& c);  // false: it is done
  bool read_some(Connection& c);
  void answer(Connection& c, std::string_view bytes);
  bool is_ours(const std::string& host) const;

  std::string address_;
  bool loopback_ = true;
  std::uint16_t port_ = 0;
  Answer answer_;
  Descriptor listener_;
  std::vector<Connection> connections_;
};

}  // namespace heddle::io
