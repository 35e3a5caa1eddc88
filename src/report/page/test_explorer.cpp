#include <gtest/gtest.h>

#include "heddle/error.h"
#include "report/page/explorer.h"

namespace heddle::report {
namespace {

Explorer small() {
  return {
      .name = "one",
      .title = "a < b",
      .caption = "c",
      .law = "grid",
      .slider = {.label = "w", .low = 1, .high = 100, .start = 10, .steps = 2, .logarithmic = true},
      .x = {"N", 10, 1000, true},
      .y = {"y", 0, 1},
      .lines = {"l"},
      .measured = {{10, 0, 100, 0.5}}};
}

TEST(Explorer, HoldsWhatWasMeasured) {
  const std::string html = explorer(small()).text;
  for (const char* part :
       {"id=\"explore-one\"", "<h3>a &lt; b</h3>", "type=\"range\"", "max=\"2\"",
        "&quot;label&quot;:&quot;N (log scale)&quot;", "&quot;measured&quot;:[[10.0,0,100.0,0.5]]",
        "&quot;marks&quot;:[[10.0,&quot;10&quot;],[100.0,&quot;100&quot;],[1000."
        "0,&quot;1000&quot;]]"})
    EXPECT_NE(html.find(part), std::string::npos) << part << "\nis not in\n" << html;
}

TEST(Explorer, RefusesWhatCannotBeDrawn) {
  const auto refused = [](auto change) {
    Explorer e = small();
    change(e);
    EXPECT_THROW(explorer(e), Error);
  };
  refused([](Explorer& e) { e.name.clear(); });
  refused([](Explorer& e) { e.slider.steps = 0; });
  refused([](Explorer& e) { e.slider.low = 0; });
  refused([](Explorer& e) { e.slider.start = 101; });
  refused([](Explorer& e) { e.x.low = 1000; });
  refused([](Explorer& e) { e.y.high = 0; });
  refused([](Explorer& e) { e.lines.clear(); });
}

}  // namespace
}  // namespace heddle::report
