#include "run/log/log_files.h"

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/errors.h"
#include "io/json/json.h"
#include "run/log/log.h"
#include "run/log/tensorboard.h"

namespace heddle::run {

namespace {

namespace fs = std::filesystem;

// The fields of all kinds of lines, and what TensorBoard calls them. Step and seconds are the place
// of its points and no values.
struct LogField {
  const char* name;
  const char* tag;
};
constexpr std::array<LogField, 14> kLogFields = {
    {{"step", nullptr},
     {"loss", "train/loss"},
     {"lr", "train/learning_rate"},
     {"tokens", "train/tokens"},
     {"seconds", nullptr},
     {"tokens_per_s", "train/tokens_per_s"},
     {"grad_norm", "train/grad_norm"},
     {"live_bytes", "train/live_bytes"},
     {"eval_loss", "validation/loss"},
     {"eval_tokens", "validation/tokens"},
     {"accuracy", "validation/accuracy"},
     {"sent_bytes", "train/sent_bytes"},
     {"communication_seconds", "train/communication_seconds"},
     {"communication_hidden", "train/communication_hidden"}}};

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) io::fail_system(path, "cannot remove", error.value());
}

class CsvCopy : public LogCopy {
 public:
  using LogCopy::LogCopy;

 protected:
  std::string head() const override {
    std::string row;
    for (const LogField& field : kLogFields)
      row += (row.empty() ? "" : ",") + std::string(field.name);
    return row + "\n";
  }
  std::string bytes_of(const LogLine& line) const override {
    std::string row;
    for (const LogField& field : kLogFields) {
      if (field.name != kLogFields[0].name) row += ',';
      if (line.contains(field.name)) row += line[field.name].dump();
    }
    return row + "\n";
  }
};

constexpr std::string_view kEventsPrefix = "events.out.tfevents.", kEventsSuffix = ".heddle";

// "events.out.tfevents.1731787200.heddle": when the run began.
std::optional<std::int64_t> beginning_of(std::string_view name) {
  if (!name.starts_with(kEventsPrefix) || !name.ends_with(kEventsSuffix)) return std::nullopt;
  name.remove_prefix(kEventsPrefix.size());
  if (name.size() <= kEventsSuffix.size()) return std::nullopt;
  name.remove_suffix(kEventsSuffix.size());
  std::int64_t seconds = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), seconds);
  const bool whole = result.ec == std::errc() && result.ptr == name.data() + name.size();
  return whole && seconds >= 0 ? std::optional(seconds) : std::nullopt;
}

class TensorboardCopy : public LogCopy {
 public:
  TensorboardCopy(std::string path, std::int64_t began)
      : LogCopy(std::move(path)), began_(static_cast<double>(began)) {}

 protected:
  std::string head() const override { return tf_record(tf_version_event(began_)); }
  // Its time is that of the run: where it was interrupted there is no gap.
  std::string bytes_of(const LogLine& line) const override {
    std::vector<TaggedScalar> scalars;
    scalars.reserve(kLogFields.size());
    for (const LogField& field : kLogFields)
      if (field.tag != nullptr && line.contains(field.name))
        scalars.push_back({field.tag, line[field.name].get<float>()});
    return tf_record(tf_scalar_event(began_ + line["seconds"].get<double>(),
                                     line["step"].get<std::int64_t>(), scalars));
  }

 private:
  double began_;
};

std::vector<LogLine> lines_of(const std::string& path) {
  std::vector<LogLine> lines;
  const std::string text = io::read_file(path, kMostLog);
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string place = path + ":" + std::to_string(++number);
    LogLine line = LogLine::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object()) io::fail_io(place, "is no line of a log", "a JSON object");
    for (const LogField& field : kLogFields)
      if (line.contains(field.name) && !line[field.name].is_number())
        io::fail_io(place, "key " + std::string(field.name), "a number");
    if (!line.contains("step") || !line.contains("seconds"))
      io::fail_io(place, "is no line of a log", "the keys step and seconds");
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

}  // namespace

// A program that reads the file while it grows keeps its place in it: where it is as it should be,
// it is only cut.
void LogCopy::begin(const std::vector<LogLine>& lines) {
  file_.reset();
  if (lines.empty()) {
    remove_file(path_);
    return;
  }
  std::string wanted = head();
  for (const LogLine& line : lines) wanted += bytes_of(line);
  if (!io::file_exists(path_) || !io::read_file(path_, 2 * kMostLog).starts_with(wanted))
    io::write_file_atomic(path_, wanted);
  file_ = std::make_unique<io::AppendFile>(path_);
  file_->truncate(wanted.size());
}

void LogCopy::append(const LogLine& line) {
  std::string bytes;
  if (!file_) {
    file_ = std::make_unique<io::AppendFile>(path_);
    bytes = head();
  }
  file_->append(bytes + bytes_of(line));
}

void LogCopy::flush() {
  if (file_) file_->flush();
}

std::unique_ptr<LogCopy> make_csv_copy(const RunPaths& paths) {
  return std::make_unique<CsvCopy>(paths.directory + "/log.csv");
}

std::unique_ptr<LogCopy> make_tensorboard_copy(const RunPaths& paths, std::int64_t now) {
  std::optional<std::int64_t> began;
  std::error_code error;
  const fs::directory_iterator all(paths.directory, error);
  if (error) io::fail_system(paths.directory, "cannot list the directory", error.value());
  for (const fs::directory_entry& entry : all)
    if (const auto seconds = beginning_of(entry.path().filename().string()))
      began = std::min(began.value_or(*seconds), *seconds);
  const std::int64_t moment = began.value_or(now);
  const std::string name =
      std::string(kEventsPrefix) + std::to_string(moment) + std::string(kEventsSuffix);
  return std::make_unique<TensorboardCopy>(paths.directory + "/" + name, moment);
}

// Copies go first when nothing is to be left, and come last when there is a line: wherever one is,
// log.jsonl has lines.
LogFiles::LogFiles(const RunPaths& paths, const std::vector<recipe::LogFormat>& formats,
                   std::uint64_t bytes)
    : jsonl_(paths.log()) {
  using std::chrono::seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const recipe::LogFormat format : formats) {
    if (format == recipe::LogFormat::csv) copies_.push_back(make_csv_copy(paths));
    if (format == recipe::LogFormat::tensorboard)
      copies_.push_back(
          make_tensorboard_copy(paths, std::chrono::duration_cast<seconds>(now).count()));
  }
  if (bytes == 0)
    for (const auto& copy : copies_) copy->begin({});
  jsonl_.truncate(bytes);
  if (bytes == 0 || copies_.empty()) return;
  const std::vector<LogLine> lines = lines_of(paths.log());
  for (const auto& copy : copies_) copy->begin(lines);
}

void LogFiles::append(const LogLine& line) {
  jsonl_.append_line(line.dump());
  for (const auto& copy : copies_) copy->append(line);
}

void LogFiles::flush() {
  jsonl_.flush();
  for (const auto& copy : copies_) copy->flush();
}

}  // namespace heddle::run
