#include <filesystem>
#include <sstream>

#include "data/library/library.h"
#include "data/loading.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/files/run_program.h"
#include "language/language.h"

namespace heddle::data {

namespace {

namespace fs = std::filesystem;
using Say = std::function<void(const std::string&)>;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;

// `bible` prints verses as "  12 And God ..." below headings.
std::string verses(const std::string& printed) {
  std::istringstream lines(printed);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t number = line.find_first_not_of(' ');
    if (number == 0 || number == std::string::npos) continue;
    const std::size_t end = line.find_first_not_of("0123456789", number);
    if (end == number || end == std::string::npos || line[end] != ' ') continue;
    text += line.substr(end + 1) + "\n";
  }
  if (text.empty())
    io::fail_io("bible", "printed no verses", "lines such as \"  1 In the beginning\"");
  return text;
}

std::string bible() {
  if (!io::has_program("bible"))
    fail(ErrorCode::failed, "data get kjv", "the program bible is not there",
         "Debian's package: apt-get install bible-kjv");
  return verses(io::run_program({"bible", "-l100000", "ge1:1-re22:21"}, kLargestFile));
}

bool is_url(const std::string& from) { return from.find("://") != std::string::npos; }

std::string download(const std::string& url, const Say& say) {
  say(tr("fetching {}", url));
  if (io::has_program("curl"))
    return io::run_program({"curl", "--fail", "--location", "--silent", "--show-error", "--", url},
                           kLargestFile);
  if (io::has_program("wget"))
    return io::run_program({"wget", "--quiet", "--output-document=-", "--", url}, kLargestFile);
  fail(ErrorCode::failed, url, "needs curl or wget to be fetched",
       "one of them, or a folder with the files after --from");
}

// A file of the data set below `from`, by the name that its origin gives it or by ours.
std::string take(const KnownData& data, std::size_t index, const std::string& from,
                 const Say& say) {
  const std::string source(data.sources[index]);
  const std::string own = fs::path(data.files[index]).filename().string();
  if (is_url(from)) {
    const bool whole = data.files.size() == 1 && !from.ends_with("/");
    return download(whole ? from : from + (from.ends_with("/") ? "" : "/") + source, say);
  }
  std::error_code ignored;
  if (data.files.size() == 1 && fs::is_regular_file(from, ignored))
    return io::read_file(from, kLargestFile);
  for (const std::string& name : {source, own})
    if (const fs::path file = fs::path(from) / name; fs::is_regular_file(file, ignored))
      return io::read_file(file.string(), kLargestFile);
  io::fail_io(from, "lacks a file of " + std::string(data.name), source + " or " + own, "neither");
}

std::string made(const KnownData& data, std::size_t index, const std::string& from,
                 const Say& say) {
  if (data.name == "kjv" && from.empty()) return bible();
  if (from.empty())
    fail(ErrorCode::invalid_argument, "data get " + std::string(data.name),
         "needs a place to take it from", "--from FOLDER-OR-URL (" + how_to_get(data) + ")");
  std::string bytes = take(data, index, from, say);
  const std::string file(data.files[index]);
  const bool tags = file.ends_with(".tsv") && bytes.find("\t_\t") != std::string::npos;
  return tags ? tags_of_conllu(bytes, file) : bytes;
}

}  // namespace

std::string tags_of_conllu(std::string_view conllu, std::string_view file) {
  std::string out;
  std::istringstream lines{std::string(conllu)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with("\r")) line.pop_back();
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      out += "\n";
      continue;
    }
    std::istringstream columns(line);
    std::string id, form, lemma, tag;
    std::getline(columns, id, '\t');
    std::getline(columns, form, '\t');
    std::getline(columns, lemma, '\t');
    std::getline(columns, tag, '\t');
    if (form.empty() || tag.empty())
      io::fail_io(std::string(file) + ":" + std::to_string(number), "is no line of CoNLL-U",
                  "id, word, lemma and tag with tabs between them", io::shown(line));
    if (id.find_first_of("-.") == std::string::npos)
      out.append(form).append("\t").append(tag).append("\n");
  }
  return out;
}

std::vector<std::string> get_data(const KnownData& data, const GetOptions& options,
                                  const Say& say) {
  if (!data.place.empty()) {
    if (!io::directory_exists(std::string(data.place)))
      fail(ErrorCode::failed, "data get " + std::string(data.name), "is not installed",
           "its files (" + how_to_get(data) + ")");
    say(tr("{} is there already", data.place));
    return {std::string(data.place)};
  }
  const std::string folder = options.to.empty() ? data_folder() : options.to;
  if (folder.empty())
    fail(ErrorCode::invalid_argument, "data get", "no folder for data is known",
         "one after --to, or in HEDDLE_DATA");
  std::vector<std::string> paths;
  paths.reserve(data.files.size());
  for (std::size_t i = 0; i < data.files.size(); ++i) {
    const fs::path path = fs::path(folder) / data.files[i];
    paths.push_back(path.string());
    if (io::file_exists(path.string())) {
      say(tr("{} is there already", path.string()));
      continue;
    }
    const std::string bytes = made(data, i, options.from, say);
    io::make_directories(path.parent_path().string());
    io::write_file_atomic(path.string(), bytes);
    say(tr("{}: {} bytes", path.string(), grouped(static_cast<std::int64_t>(bytes.size()))));
  }
  return paths;
}

}  // namespace heddle::data
