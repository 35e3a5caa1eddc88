#include "io/http/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"

namespace heddle::io {

namespace {

constexpr std::size_t kMostConnections = 32;
constexpr std::chrono::seconds kPatience(10);  // of one connection

// An address of either family, as the system wants it.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  bool loopback = false;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

SocketAddress parse_address(const std::string& text, std::uint16_t port) {
  SocketAddress out;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    out.size = sizeof four;
    out.loopback = (ntohl(four.sin_addr.s_addr) >> 24) == 127;
    std::memcpy(&out.bytes, &four, sizeof four);
  } else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    out.size = sizeof six;
    out.loopback = IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
    std::memcpy(&out.bytes, &six, sizeof six);
  } else {
    fail(ErrorCode::invalid_argument, "address", "is no IP address",
         "one of this machine: 127.0.0.1, or 0.0.0.0 for all of them", text);
  }
  return out;
}

void make_nonblocking(const Descriptor& socket, const std::string& name) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    fail_system(name, "cannot be made not to wait", errno);
}

std::uint16_t port_of(const Descriptor& socket, const std::string& name) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bytes), &size) != 0)
    fail_system(name, "has no name", errno);
  if (bytes.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &bytes, sizeof four);
    return ntohs(four.sin_port);
  }
  sockaddr_in6 six{};
  std::memcpy(&six, &bytes, sizeof six);
  return ntohs(six.sin6_port);
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

HttpServer::HttpServer(const std::string& address, std::uint16_t port, Answer answer)
    : address_(address), answer_(std::move(answer)) {
  SocketAddress at = parse_address(address, port);
  loopback_ = at.loopback;
  const std::string name = address + " port " + std::to_string(port);
  listener_ = Descriptor(::socket(at.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener_.get() < 0) fail_system(name, "cannot make a socket", errno);
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener_.get(), at.get(), at.size) != 0)
    fail_system(name, "cannot be listened on", errno);
  if (::listen(listener_.get(), 16) != 0) fail_system(name, "cannot be listened on", errno);
  make_nonblocking(listener_, name);
  port_ = port_of(listener_, name);
}

std::string HttpServer::url() const {
  const bool six = address_.find(':') != std::string::npos;
  return "http://" + (six ? "[" + address_ + "]" : address_) + ":" + std::to_string(port_) + "/";
}

void HttpServer::serve_for(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    std::vector<pollfd> polled;
    polled.reserve(connections_.size() + 1);
    // With all places taken, newcomers wait in the queue of the system.
    const bool room = connections_.size() < kMostConnections;
    polled.push_back({listener_.get(), static_cast<short>(room ? POLLIN : 0), 0});
    auto until = end;
    for (const Connection& c : connections_) {
      polled.push_back({c.socket.get(), static_cast<short>(c.answering ? POLLOUT : POLLIN), 0});
      until = std::min(until, c.until);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    const int found = ::poll(polled.data(), polled.size(),
                             static_cast<int>(std::clamp<std::int64_t>(wait, 0, 1000)));
    if (found < 0 && errno == EINTR) return;
    if (found < 0) fail_system(url(), "cannot be waited for", errno);
    now = Clock::now();
    std::vector<Connection> going;
    going.reserve(kMostConnections);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const bool ready = polled[i + 1].revents != 0;
      if (now < connections_[i].until && (!ready || advance(connections_[i])))
        going.push_back(std::move(connections_[i]));
    }
    connections_ = std::move(going);
    if (polled[0].revents != 0) accept_all();
  }
}

void HttpServer::accept_all() {
  while (connections_.size() < kMostConnections) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Whoever is gone already, and a system without free descriptors, is no reason to end.
    if (socket.get() < 0) return;
    connections_.push_back({std::move(socket), Clock::now() + kPatience, {}, {}, 0, false});
  }
}

bool HttpServer::advance(Connection& c) {
  if (!c.answering) return read_some(c);
  const ssize_t sent =
      ::send(c.socket.get(), c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
  if (sent < 0) return would_wait();
  c.sent += static_cast<std::size_t>(sent);
  if (c.sent < c.out.size()) return true;
  ::shutdown(c.socket.get(), SHUT_WR);
  return false;
}

bool HttpServer::read_some(Connection& c) {
  std::array<char, 4096> buffer{};
  const std::size_t room = std::min(buffer.size(), kMostRequest - c.in.size());
  const ssize_t got = ::recv(c.socket.get(), buffer.data(), room, 0);
  if (got < 0) return would_wait();
  if (got == 0) return false;
  c.in.append(buffer.data(), static_cast<std::size_t>(got));
  answer(c, c.in);
  return true;
}

void HttpServer::answer(Connection& c, std::string_view bytes) {
  const HttpParse parsed = parse_http_request(bytes);
  if (!parsed.complete && parsed.refused == 0) return;
  HttpResponse response = http_refusal(parsed.refused);
  if (parsed.complete && !is_ours(parsed.request.host))
    response = http_refusal(403);
  else if (parsed.complete)
    try {
      response = answer_(parsed.request);
    } catch (const std::exception& e) {
      response = http_refusal(500);
      response.body = std::string(e.what()) + "\n";
    }
  c.out = http_answer(response);
  c.answering = true;
}

bool HttpServer::is_ours(const std::string& host) const {
  if (!loopback_) return true;
  const std::string own = address_.find(':') == std::string::npos ? address_ : "[" + address_ + "]";
  return host == own || host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace heddle::io
