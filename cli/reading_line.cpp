#include "reading_line.h"

#include <string>

#include "language/language.h"
#include "report/page/numbers.h"

namespace heddle::cli {

void ReadingLine::show(const data::ReadingProgress& progress) {
  using Phase = data::ReadingProgress::Phase;
  if (progress.phase != phase_ || progress.done < before_) since_ = {};  // of another text
  phase_ = progress.phase;
  before_ = progress.done;
  const auto size = [](std::int64_t bytes) {
    return report::bytes_text(static_cast<double>(bytes));
  };
  switch (progress.phase) {
    case Phase::waiting:
      return line_.show(tr("waiting: another process writes token files in that folder"));
    case Phase::merging:
      return line_.show(tr("merging: {} of {} tokens", progress.done, progress.total));
    case Phase::counting:
    case Phase::tokenising: break;
  }
  std::string text =
      progress.phase == Phase::counting
          ? tr("reading for the tokenizer: {} of {}", size(progress.done), size(progress.total))
          : tr("tokenising: {} of {}", size(progress.done), size(progress.total));
  const double seconds = since_.seconds();
  if (seconds > 1 && progress.done > 0 && progress.done < progress.total) {
    const double left = seconds * static_cast<double>(progress.total - progress.done) /
                        static_cast<double>(progress.done);
    text += "  " + tr("{} left", report::duration_text(left));
  }
  line_.show(text);
}

}  // namespace heddle::cli
