#include "check/spread.h"

#include <algorithm>
#include <cmath>

#include "check/subject.h"

namespace heddle::check {

namespace {

constexpr std::uint32_t kDraws = 4;

}  // namespace

void Spread::add(const std::vector<Difference>& draw) {
  for (const Difference& d : draw) {
    // Without limit is what is not a number: no rounding, but a fault that the comparison finds.
    if (!std::isfinite(d.largest) || !std::isfinite(d.mean)) continue;
    Most& most = groups_[d.group];
    most.largest = std::max(most.largest, d.largest);
    most.mean = std::max(most.mean, d.mean);
  }
}

double Spread::of(const std::string& group, Measure measure) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return 0;
  return measure == Measure::largest ? found->second.largest : found->second.mean;
}

double Spreads::of(const std::string& group, DType dtype, Measure measure) const {
  if (dtype == DType::bf16) return bf16.of(group, measure);
  const double share = epsilon(dtype) / epsilon(DType::f32);  // 1, or what f64 is of it
  return share * f32.of(group, measure);
}

Spreads measure_spreads(const std::function<std::vector<Named>(const Jitter&)>& results) {
  best_setting(DType::f64).use();
  const std::vector<Named> unmoved = results({});
  Spreads spreads;
  for (std::uint32_t draw = 1; draw <= kDraws; ++draw)
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Jitter jitter{epsilon(dtype), draw};
      const RoundedKernels rounded(jitter);
      (dtype == DType::f32 ? spreads.f32 : spreads.bf16)
          .add(differences_of(results(jitter), unmoved));
    }
  return spreads;
}

}  // namespace heddle::check
