// As much of HTTP/1.1 as it takes to show a page to a browser: requests read with limits, answers
// written whole. Who asks may be hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::io {

inline constexpr std::size_t kMostRequest = 8192;  // bytes: line and header

struct HttpRequest {
  std::string path;  // "/version", without what follows a question mark
  std::string host;  // of the header Host, without its port; empty where there is none
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
};

// The result of parsing the bytes so far.
struct HttpParse {
  bool complete = false;
  int refused = 0;  // the status for anything that is not a valid request: 400, 405, 431, 505
  HttpRequest request = {};
};

// Of the bytes from the beginning of a connection. Only GET is taken.
HttpParse parse_http_request(std::string_view bytes);

// The whole response, with a header that allows the page its own content and nothing else.
std::string http_answer(const HttpResponse& response);

// The response to a refused request: a line of text.
HttpResponse http_refusal(int status);

}  // namespace heddle::io
