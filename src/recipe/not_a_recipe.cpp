#include "recipe/not_a_recipe.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "heddle/error.h"
#include "io/files/checksums/seal.h"
#include "io/files/descriptor.h"
#include "io/shell_word.h"

namespace heddle::recipe {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kHead = 4096;  // bytes that are looked at

struct Format {
  std::string_view begins, what, instead;
};

constexpr std::string_view kUseRun =
    "a recipe (TOML); a model that was trained is used by its run's directory: heddle generate RUN";
constexpr std::string_view kUtf8 = "a recipe in UTF-8: save it again with that encoding";

constexpr std::array kFormats = {
    Format{"\x89PNG"sv, "is an image (PNG)", ""},
    Format{"\xff\xd8\xff"sv, "is an image (JPEG)", ""},
    Format{"GIF8"sv, "is an image (GIF)", ""},
    Format{"\x1f\x8b"sv, "is compressed with gzip", ""},
    Format{"PK\x03\x04"sv, "is a ZIP archive, as weights of PyTorch are", kUseRun},
    Format{"GGUF"sv, "has weights of llama.cpp (GGUF)", kUseRun},
    Format{"%PDF"sv, "is a PDF", ""},
    Format{"\xff\xfe"sv, "is text in UTF-16", kUtf8},
    Format{"\xfe\xff"sv, "is text in UTF-16", kUtf8},
    Format{"{"sv, "is JSON", ""},
};

std::string head_of(const std::string& path) {
  const io::Descriptor file = io::open_regular(path, O_RDONLY);
  std::string head(kHead, '\0');
  head.resize(io::read_some(file, path, head.data(), head.size()));
  return head;
}

std::string_view trimmed_line(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.\"' \t").find(c) != std::string_view::npos;
}

// "[table]", or a key of one word and "=".
bool looks_like_toml(std::string_view line) {
  if (line.starts_with('[')) return true;
  const std::size_t equals = line.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::ranges::all_of(line.substr(0, equals), is_key_letter);
}

// "layers: 4"
bool looks_like_yaml(std::string_view line) {
  const std::size_t colon = line.find(": ");
  return colon != std::string_view::npos && colon > 0 &&
         line.substr(0, colon).find_first_of(" \t") == std::string_view::npos;
}

struct Lines {
  int said = 0, toml = 0, yaml = 0, tabs = 0;
};

Lines count_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    ++lines.said;
    lines.toml += looks_like_toml(line) ? 1 : 0;
    lines.yaml += looks_like_yaml(line) ? 1 : 0;
    lines.tabs += line.find('\t') != std::string_view::npos ? 1 : 0;
  }
  return lines;
}

[[noreturn]] void refuse_file(const std::string& path, std::string_view what,
                              std::string_view expected) {
  constexpr std::string_view kAnyRecipe =
      "a recipe (TOML), which names the data: heddle init writes one";
  fail(ErrorCode::io, path, std::string(what) + ", not a recipe",
       expected.empty() ? kAnyRecipe : expected);
}

void refuse_lines(const std::string& path, const Lines& lines) {
  if (lines.said == 0 || lines.toml > 0) return;
  if (2 * lines.yaml > lines.said)
    refuse_file(path, "looks like YAML",
                "a recipe (TOML): [model] above its keys, and layers = 4 for layers: 4");
  const std::string file = io::shell_word(path);
  if (2 * lines.tabs > lines.said)
    refuse_file(path, "is a text with columns",
                "a recipe (TOML), which names its data. To write one that learns from this file: "
                "heddle init --data pairs --path " +
                    file + " (or --data tags, or --data labelled)");
  refuse_file(path, "is a text",
              "a recipe (TOML), which names its data. To write one that learns from this file: "
              "heddle init --data text --path " +
                  file);
}

}  // namespace

void refuse_what_is_no_recipe(const std::string& path) {
  const std::string head = head_of(path);
  if (io::has_toml_seal(head)) return;  // a run's own: it may be damaged
  for (const Format& format : kFormats)
    if (std::string_view(head).starts_with(format.begins))
      refuse_file(path, format.what, format.instead);
  // safetensors: the length of a JSON header in eight bytes, and that header.
  if (head.size() > 8 && head[8] == '{' && head.substr(5, 3) == "\0\0\0"sv)
    refuse_file(path, "has weights (safetensors)", kUseRun);
  if (head.find('\0') != std::string::npos) refuse_file(path, "is a binary file", "");
  if (head.find_first_not_of(" \t\r\n") == std::string::npos) refuse_file(path, "is empty", "");
  refuse_lines(path, count_lines(head));
}

}  // namespace heddle::recipe
