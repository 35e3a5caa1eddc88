#include "check/spread.h"

#include <algorithm>
#include <cmath>

#include "check/subject.h"

namespace heddle::check {

namespace {

// A jump that is near (a choice between two keys, the sign of two columns) must be seen by one of
// these before rounding falls over it. That of f32 is so small that it hardly ever does.
constexpr std::uint32_t kDrawsOfF32 = 4, kDrawsOfBf16 = 6;

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
  const auto draw = [&](DType dtype, std::uint32_t number, Spread& spread) {
    const Jitter jitter{kWidthOfDraws * epsilon(dtype), number};
    const RoundedOps rounded(jitter);
    spread.add(differences_of(results(jitter), unmoved));
  };
  for (std::uint32_t i = 1; i <= kDrawsOfF32; ++i) draw(DType::f32, i, spreads.f32);
  for (std::uint32_t i = 1; i <= kDrawsOfBf16; ++i) draw(DType::bf16, i, spreads.bf16);
  return spreads;
}

}  // namespace heddle::check
