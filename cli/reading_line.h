// One live line while a text goes to token files.
#pragma once

#include "base/stopwatch.h"
#include "data/dataset.h"
#include "progress.h"

namespace heddle::cli {

class ReadingLine {
 public:
  ~ReadingLine() { line_.finish(); }

  // Good for as long as the line.
  data::ReadingSink sink() {
    return [this](const data::ReadingProgress& progress) { show(progress); };
  }

 private:
  void show(const data::ReadingProgress& progress);

  ProgressLine line_;
  data::ReadingProgress::Phase phase_ = data::ReadingProgress::Phase::counting;
  std::int64_t before_ = 0;  // what was done, when it was told last
  Stopwatch since_;          // the phase began
};

}  // namespace heddle::cli
