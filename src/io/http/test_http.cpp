// Requests from browsers and from attackers; a server on the loopback.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "heddle/error.h"
#include "io/http/http.h"
#include "io/http/http_server.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

TEST(Http, ReadsWhatABrowserAsks) {
  const HttpParse p = parse_http_request(
      "GET /version?x=1 HTTP/1.1\r\nHost: LocalHost:8080\r\nUser-Agent: a: b\r\n\r\n");
  EXPECT_TRUE(p.complete);
  EXPECT_EQ(p.refused, 0);
  EXPECT_EQ(p.request.path, "/version");
  EXPECT_EQ(p.request.host, "localhost");
  EXPECT_EQ(parse_http_request("GET / HTTP/1.1\r\nhost:[::1]:80\r\n\r\n").request.host, "[::1]");
  EXPECT_EQ(parse_http_request("GET / HTTP/1.1\r\nhost: [::1]\r\n\r\n").request.host, "[::1]");
  EXPECT_EQ(parse_http_request("GET / HTTP/1.0\r\n\r\n").request.host, "");
}

TEST(Http, EveryBeginningOfARequestIsWaitedFor) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const HttpParse p = parse_http_request(whole.substr(0, n));
    EXPECT_FALSE(p.complete) << n;
    EXPECT_EQ(p.refused, 0) << n;
  }
  EXPECT_TRUE(parse_http_request(whole).complete);
}

TEST(Http, RefusesTheRest) {
  const auto refused = [](const std::string& bytes) { return parse_http_request(bytes).refused; };
  EXPECT_EQ(refused("POST / HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(refused("HEAD / HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(refused("GET /\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET http://a/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET /\x01 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("get / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n: empty\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(refused(std::string(kMostRequest, 'a')), 431);
  EXPECT_EQ(refused(std::string(kMostRequest - 1, 'a')), 0);
}

// Nothing that can come takes more than its own memory or leaves the rules.
TEST(Http, RandomBytesAreReadOrRefused) {
  std::mt19937 random(5);
  const std::string valid = "GET /a HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = valid;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const HttpParse p = parse_http_request(bytes);
    EXPECT_FALSE(p.complete && p.refused != 0);
    if (p.complete) {
      EXPECT_TRUE(p.request.path.starts_with("/"));
    }
  }
}

TEST(Http, AnswersAreWhole) {
  const std::string text = http_answer({200, "text/plain", "hello"});
  EXPECT_TRUE(
      text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"));
  EXPECT_TRUE(text.ends_with("\r\n\r\nhello"));
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(http_answer(http_refusal(405)).find("Allow: GET"), std::string::npos);
}

int connect_to(std::uint16_t port) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(s, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  return s;
}

std::string asked(std::uint16_t port, const std::string& request) {
  const int s = connect_to(port);
  EXPECT_EQ(::send(s, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string all;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::recv(s, buffer.data(), buffer.size(), 0)) > 0;)
    all.append(buffer.data(), static_cast<std::size_t>(n));
  ::close(s);
  return all;
}

TEST(HttpServer, ServesOnePersonAndNoStrangers) {
  const std::string large(3000000, 'x');  // more than a socket takes at once
  HttpServer server("127.0.0.1", 0, [&](const HttpRequest& r) -> HttpResponse {
    if (r.path == "/large") return {200, "text/plain", large};
    if (r.path == "/bad") fail(ErrorCode::io, "log.jsonl", "is gone");
    return r.path == "/" ? HttpResponse{200, "text/html", "page"} : http_refusal(404);
  });
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()) + "/");
  EXPECT_GT(server.port(), 0);
  std::atomic<bool> done = false;
  std::thread thread([&] {
    while (!done) server.serve_for(std::chrono::milliseconds(20));
  });
  const auto get = [&](const std::string& path, const std::string& host = "localhost") {
    return asked(server.port(), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  const int silent = connect_to(server.port());  // says nothing, and keeps no other client waiting
  EXPECT_TRUE(get("/").ends_with("\r\n\r\npage"));
  EXPECT_TRUE(get("/", "127.0.0.1:99").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get("/large").ends_with("\r\n\r\n" + large));
  EXPECT_TRUE(get("/other").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(get("/", "evil.example").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(asked(server.port(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(asked(server.port(), "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(asked(server.port(), std::string(kMostRequest, 'a')).starts_with("HTTP/1.1 431"));
  const std::string bad = get("/bad");
  EXPECT_TRUE(bad.starts_with("HTTP/1.1 500") && bad.find("log.jsonl") != std::string::npos) << bad;
  ::close(connect_to(server.port()));  // gone before it asked
  EXPECT_TRUE(get("/").ends_with("page"));
  ::close(silent);
  done = true;
  thread.join();
}

TEST(HttpServer, SaysWhatItCannotListenOn) {
  const auto listen = [](const std::string& address, std::uint16_t port) {
    return HttpServer(address, port, [](const HttpRequest&) { return HttpResponse{}; });
  };
  EXPECT_THROW(listen("localhost", 0), Error);
  EXPECT_THROW(listen("", 0), Error);
  EXPECT_THROW(listen("203.0.113.7", 0), Error);  // not an address of this machine
  const HttpServer first = listen("127.0.0.1", 0);
  try {
    listen("127.0.0.1", first.port());
    ADD_FAILURE() << "two servers on one port";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(first.port())), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::io
