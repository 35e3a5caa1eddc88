#include "io/http/http.h"

#include <algorithm>
#include <cctype>

namespace heddle::io {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
}

// "127.0.0.1:8080" and "[::1]:8080" without the port.
std::string without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket))
    host = host.substr(0, colon);
  return lower(host);
}

// The method's own answer where it is not GET; a line of it may be cut off still.
int refused_line(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1),
                         target = line.substr(first + 1, last - first - 1);
  const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
  if (method.empty() || !std::ranges::all_of(method, is_upper)) return 400;
  if (!version.starts_with("HTTP/")) return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  if (method != "GET") return 405;
  const bool bad = !target.starts_with("/") || target.find(' ') != std::string_view::npos;
  return bad || !is_plain(target) ? 400 : 0;
}

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
  }
}

}  // namespace

HttpParse parse_http_request(std::string_view bytes) {
  HttpParse out;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos || end + 4 > kMostRequest) {
    if (bytes.size() >= kMostRequest) out.refused = 431;
    return out;
  }
  const std::string_view head = bytes.substr(0, end);
  const std::size_t line_end = std::min(head.find("\r\n"), head.size());
  const std::string_view line = head.substr(0, line_end);
  out.refused = refused_line(line);
  if (out.refused != 0) return out;
  const std::string_view target = line.substr(4, line.rfind(' ') - 4);
  out.request.path = target.substr(0, target.find('?'));
  bool has_host = false;
  for (std::size_t at = line_end; at < head.size();) {
    at += 2;
    const std::size_t next = std::min(head.find("\r\n", at), head.size());
    const std::string_view field = head.substr(at, next - at);
    const std::size_t colon = field.find(':');
    if (colon == 0 || colon == std::string_view::npos || !is_plain(field.substr(0, colon))) {
      out.refused = 400;
      return out;
    }
    if (lower(field.substr(0, colon)) == "host") {
      if (has_host) out.refused = 400;  // which one is meant?
      has_host = true;
      out.request.host = without_port(without_blanks(field.substr(colon + 1)));
    }
    at = next;
  }
  out.complete = out.refused == 0;
  return out;
}

std::string http_answer(const HttpResponse& response) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out.append(reason_of(response.status)).append("\r\nContent-Type: ").append(response.type);
  out.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  if (response.status == 405) out.append("\r\nAllow: GET");
  out.append(
      "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:; connect-src 'self'; frame-ancestors 'none'; "
      "base-uri 'none'; form-action 'none'\r\n\r\n");
  return out += response.body;
}

HttpResponse http_refusal(int status) {
  return {status, "text/plain; charset=utf-8",
          std::to_string(status) + " " + reason_of(status) + "\n"};
}

}  // namespace heddle::io
