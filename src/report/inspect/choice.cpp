#include "report/inspect/choice.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "heddle/error.h"

namespace heddle::report {

namespace {

// An empty text is the default.
std::int64_t bound(std::string_view text, std::int64_t absent, const std::string& all) {
  if (text.empty()) return absent;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail(ErrorCode::invalid_argument, "--rows", "range of queries",
         "FIRST:END such as 0:16, with END not included", all);
  return value;
}

std::int64_t longest(const model::AttentionMaps& maps, const std::vector<HeadPlace>& heads) {
  std::int64_t most = 0;
  for (const HeadPlace& h : heads) most = std::max(most, maps.layers()[h.layer].queries);
  return most;
}

// A choice that is made twice counts once, in the order of the first time.
template <class T>
std::vector<T> without_repeats(const std::vector<T>& all) {
  std::vector<T> kept;
  for (const T& one : all)
    if (std::ranges::find(kept, one) == kept.end()) kept.push_back(one);
  return kept;
}

// One number is one row.
RowRange parse_rows(const std::string& text, std::int64_t queries) {
  const std::size_t colon = text.find(':');
  const std::string_view view = text;
  RowRange r{bound(view.substr(0, colon), 0, text), queries};
  if (colon != std::string::npos)
    r.end = bound(view.substr(colon + 1), queries, text);
  else if (r.first < queries)  // also keeps the sum from overflowing
    r.end = r.first + 1;
  if (r.first >= r.end || r.end > queries)
    fail(ErrorCode::out_of_range, "--rows", "range of queries",
         "FIRST:END with 0 <= FIRST < END <= " + std::to_string(queries), text);
  return r;
}

}  // namespace

RowRange MapChoice::rows_of(const model::AttentionLayer& layer) const {
  if (!rows) return {0, layer.queries};
  return {std::min(rows->first, layer.queries), std::min(rows->end, layer.queries)};
}

MapChoice choose(const model::AttentionMaps& maps, const MapRequest& request) {
  const auto& layers = maps.layers();
  std::vector<std::size_t> places;
  for (const std::string& name : request.layers) {
    try {
      places.push_back(maps.find(name));
    } catch (const Error& e) {
      fail(e.code(), "--layer", e.problem(), e.expected(), e.got());
    }
  }
  for (std::size_t i = 0; request.layers.empty() && i < layers.size(); ++i) places.push_back(i);
  places = without_repeats(places);
  const std::vector<std::int64_t> wanted = without_repeats(request.heads);
  MapChoice choice;
  for (const std::size_t layer : places) {
    const std::int64_t heads = layers[layer].heads;
    for (const std::int64_t head : wanted) {
      if (head < 0 || head >= heads)
        fail(ErrorCode::out_of_range, "--head", "head", "0 to " + std::to_string(heads - 1),
             std::to_string(head));
      choice.heads.push_back({layer, head});
    }
    for (std::int64_t h = 0; wanted.empty() && h < heads; ++h) choice.heads.push_back({layer, h});
  }
  if (request.rows.empty()) return choice;
  choice.rows = parse_rows(request.rows, longest(maps, choice.heads));
  // Source and target differ in length: a layer without any of the rows has nothing to show.
  std::erase_if(choice.heads,
                [&](const HeadPlace& h) { return layers[h.layer].queries <= choice.rows->first; });
  return choice;
}

}  // namespace heddle::report
