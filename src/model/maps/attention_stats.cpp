#include "model/maps/attention_stats.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace heddle::model {

namespace {

// Correlation of two numbers from their sums.
class Correlation {
 public:
  void add(double x, double y) {
    ++n_;
    x_ += x;
    y_ += y;
    xx_ += x * x;
    yy_ += y * y;
    xy_ += x * y;
  }

  std::optional<double> value() const {
    const double n = n_, x = xx_ - x_ * x_ / n, y = yy_ - y_ * y_ / n;
    // Below this a spread is the rounding of sums.
    constexpr double kNothing = 1e-10;
    if (n_ < 2 || x <= kNothing * xx_ || y <= kNothing * yy_) return std::nullopt;
    return (xy_ - x_ * y_ / n) / std::sqrt(x * y);
  }

 private:
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, yy_ = 0, xy_ = 0;
};

class MapReader {
 public:
  MapReader(const AttentionLayer& layer, const SummaryOptions& options)
      : layer_(layer), grid_(options.grid) {
    pooled_.rows = std::min(options.cells, layer.queries);
    pooled_.columns = std::min(options.cells, layer.keys);
    pooled_.shares.assign(static_cast<std::size_t>(pooled_.rows * pooled_.columns), 0.0f);
    sums_.assign(pooled_.shares.size(), 0.0);
    heights_.assign(static_cast<std::size_t>(pooled_.rows), 0.0);
  }

  void row(std::int64_t query, std::span<const float> w) {
    const KeyRange seen = layer_.visible[static_cast<std::size_t>(query)];
    pool(query, w, seen);
    if (seen.count() < 2) return;
    ++total_.queries;
    spread(w, seen);
    places(query, w, seen);
  }

  HeadSummary finish() {
    if (total_.queries > 0) take_means();
    for (std::size_t i = 0; i < sums_.size(); ++i)
      pooled_.shares[i] = static_cast<float>(
          sums_[i] / std::max(heights_[i / static_cast<std::size_t>(pooled_.columns)], 1.0));
    return {total_, pooled_};
  }

 private:
  void take_means() {
    const auto n = static_cast<double>(total_.queries);
    total_.entropy_bits = entropy_bits_ / n;
    total_.entropy_share = entropy_share_ / n;
    total_.largest = largest_ / n;
    total_.first = first_ / n;
    total_.last = last_ / n;
    if (layer_.leaves_some) total_.sink = std::max(sink_ / n, 0.0);
    if (layer_.cross()) {
      total_.monotonicity = order_.value();
      return;
    }
    total_.self = self_ / n;
    total_.previous = previous_ / n;
    total_.next = next_ / n;
    if (distance_weight_ > 0) total_.distance = distance_ / distance_weight_;
  }

  static double at(std::span<const float> w, std::int64_t j) {
    return j >= 0 && j < static_cast<std::int64_t>(w.size()) ? w[static_cast<std::size_t>(j)] : 0;
  }

  void pool(std::int64_t query, std::span<const float> w, const KeyRange& seen) {
    const std::int64_t r = PooledMap::cell(query, layer_.queries, pooled_.rows);
    heights_[static_cast<std::size_t>(r)] += 1;
    double* out = sums_.data() + r * pooled_.columns;
    for (std::int64_t j = seen.first; j < seen.last; ++j)
      out[PooledMap::cell(j, layer_.keys, pooled_.columns)] += w[static_cast<std::size_t>(j)];
  }

  // H = -Σ p log2 p with p = w / Σ w, which is log2 Σ w - Σ w log2 w / Σ w.
  void spread(std::span<const float> w, const KeyRange& seen) {
    double sum = 0, logs = 0, largest = 0;
    for (std::int64_t j = seen.first; j < seen.last; ++j) {
      const double x = w[static_cast<std::size_t>(j)];
      sum += x;
      largest = std::max(largest, x);
      if (x > 0) logs += x * std::log2(x);
    }
    largest_ += largest;
    sink_ += 1 - sum;
    if (sum <= 0) return;  // relu weights may all be zero
    const double bits = std::max(std::log2(sum) - logs / sum, 0.0);
    entropy_bits_ += bits;
    entropy_share_ += bits / std::log2(static_cast<double>(seen.count()));
  }

  void places(std::int64_t query, std::span<const float> w, const KeyRange& seen) {
    first_ += at(w, 0);
    last_ += at(w, layer_.keys - 1);
    if (layer_.cross()) return look(query, w, seen);
    self_ += at(w, query);
    previous_ += at(w, query - 1);
    next_ += at(w, query + 1);
    if (grid_) return walk_patches(query, w);
    for (std::int64_t j = seen.first; j < seen.last; ++j)
      walk(w[static_cast<std::size_t>(j)], static_cast<double>(std::abs(query - j)));
  }

  void walk(double weight, double distance) {
    distance_ += weight * distance;
    distance_weight_ += weight;
  }

  void look(std::int64_t query, std::span<const float> w, const KeyRange& seen) {
    double sum = 0, place = 0;
    for (std::int64_t j = seen.first; j < seen.last; ++j) {
      sum += w[static_cast<std::size_t>(j)];
      place += w[static_cast<std::size_t>(j)] * static_cast<double>(j);
    }
    if (sum > 0) order_.add(static_cast<double>(query), place / sum);
  }

  void walk_patches(std::int64_t query, std::span<const float> w) {
    const std::int64_t first = grid_->before, columns = grid_->columns;
    if (query < first) return;
    const std::int64_t y = (query - first) / columns, x = (query - first) % columns;
    for (auto j = first; j < static_cast<std::int64_t>(w.size()); ++j)
      walk(w[static_cast<std::size_t>(j)],
           std::hypot((j - first) / columns - y, (j - first) % columns - x));
  }

  const AttentionLayer& layer_;
  std::optional<PatchGrid> grid_;
  HeadStats total_;
  PooledMap pooled_;
  std::vector<double> sums_, heights_;  // of cells; queries of a row of cells
  double entropy_bits_ = 0, entropy_share_ = 0, largest_ = 0, first_ = 0, last_ = 0;
  double self_ = 0, previous_ = 0, next_ = 0, distance_ = 0, distance_weight_ = 0, sink_ = 0;
  Correlation order_;
};

}  // namespace

HeadSummary summarise(const AttentionMaps& maps, std::size_t layer, std::int64_t head,
                      const SummaryOptions& options) {
  const AttentionLayer& l = maps.layers().at(layer);
  MapReader reader(l, options);
  const std::int64_t block = maps.rows_at_once(layer);
  const auto keys = static_cast<std::size_t>(l.keys);
  for (std::int64_t first = 0; first < l.queries; first += block) {
    const std::int64_t count = std::min(block, l.queries - first);
    const Tensor rows = maps.rows(layer, head, first, count);
    for (std::int64_t i = 0; i < count; ++i)
      reader.row(first + i, {rows.data<float>() + i * l.keys, keys});
  }
  return reader.finish();
}

}  // namespace heddle::model
