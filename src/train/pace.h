// How fast a run goes, for the line that is shown while it does.
#pragma once

#include <cstdint>

#include "train/trainer.h"

namespace heddle::train {

// Means over the last ten steps or so. Sentences make batches of all lengths, so a rate is the mean
// of what was done over the mean of its time: what one step did over the time of the usual step
// would be a rate that no step had.
class Pace {
 public:
  void add(const StepReport& step);

  double seconds() const { return seconds_; }  // of a step
  double loss() const { return loss_; }
  double tokens_per_second() const { return rate_of(tokens_); }
  double flops_per_second() const { return rate_of(flops_); }

  // `measured` is the speed of a probe before the run, perhaps while something else used the
  // machine. The speed of the run itself since then is as good a measurement, so the share is 1 at
  // most.
  double share_of_peak(double measured) const;

 private:
  double rate_of(double amount) const { return seconds_ > 0 ? amount / seconds_ : 0; }

  bool begun_ = false;
  double seconds_ = 0, loss_ = 0, tokens_ = 0, flops_ = 0;
  double best_flops_per_second_ = 0;
};

}  // namespace heddle::train
