#include "ops/attention/mask.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/attention/attention.call.h"
#include "ops/copy/copy.h"
#include "ops/support/check.h"
#include "ops/support/host.h"

namespace heddle::ops {

namespace {

using Integers = std::vector<std::int64_t>;

Integers integers(const Tensor& t) {
  return t.defined() ? cast(t.detach(), DType::i64).to_vector<std::int64_t>() : Integers();
}

void check_integers(const char* op, const char* name, const Tensor& t, const Shape& shape,
                    Device device) {
  if (!t.defined()) return;
  check_index({op, name, t});
  check_shape({op, name, t}, shape);
  if (t.device() != device && t.device() != Device::cpu)
    fail(ErrorCode::device_mismatch, op, std::string("argument ") + name,
         "a tensor on " + to_string(device) + " or cpu", t.describe());
}

void check_range(const char* op, const char* name, const Tensor& t, std::int64_t least,
                 std::int64_t most) {
  if (!t.defined() || t.device().is_meta()) return;
  for (const std::int64_t v : integers(t))
    if (v < least || v > most)
      check_condition(false, op, name, std::to_string(least) + " to " + std::to_string(most),
                      std::to_string(v));
}

void check_ascending(const char* op, const char* name, const Tensor& t) {
  if (t.device().is_meta()) return;
  const Integers v = integers(t);
  const std::int64_t length = t.size(1);
  for (std::size_t i = 1; i < v.size(); ++i)
    check_condition(static_cast<std::int64_t>(i) % length == 0 || v[i - 1] <= v[i], op, name,
                    "numbers that do not fall along a row: documents lie one behind the other",
                    std::to_string(v[i - 1]) + " before " + std::to_string(v[i]));
}

// A mask of pairs: [B or 1, H or 1, Tq, Tk].
void check_pairs(const Arg& a, const Tensor& q, DType dtype, const AttentionSizes& s) {
  check_dtype(a, dtype);
  check_rank(a, 4);
  check_same_device(a, q);
  const std::int64_t batch = a.tensor.size(0) == 1 ? 1 : s.batch;
  const std::int64_t heads = a.tensor.size(1) == 1 ? 1 : q.size(2);
  check_shape(a, {batch, heads, s.queries, s.keys});
}

// Intervals that were made before: the values are what prepared_keys() wrote.
void check_keys(const char* op, const VisibleKeys& keys, const Tensor& q, const AttentionSizes& s) {
  const Arg intervals{op, "keys.intervals", keys.intervals}, ends{op, "keys.ends", keys.ends};
  check_dtype(intervals, DType::i32);
  check_same_device(intervals, q);
  check_shape(intervals, {2, s.batch, s.queries});
  check_dtype(ends, DType::i32);
  check_same_device(ends, q);
  check_shape(ends, {s.batch});
  if (keys.keys != s.keys)
    check_condition(false, op, "keys", "intervals of " + std::to_string(s.keys) + " keys",
                    std::to_string(keys.keys));
}

// The mask with its tensors read.
struct MaskReader {
  const AttentionMask& mask;
  AttentionSizes sizes;
  Integers lengths, prefixes, query_documents, key_documents, first_queries;

  MaskReader(const AttentionMask& m, const AttentionSizes& s, bool with_values)
      : mask(m), sizes(s) {
    if (!with_values) return;
    lengths = integers(m.key_lengths);
    prefixes = integers(m.prefix_lengths);
    query_documents = integers(m.query_documents);
    key_documents = integers(m.key_documents);
    first_queries = integers(m.first_queries);
  }

  bool depends_on_batch() const {
    return !lengths.empty() || !prefixes.empty() || !key_documents.empty() ||
           !first_queries.empty();
  }

  void document(std::int64_t b, std::int64_t i, std::int64_t& first, std::int64_t& last) const {
    if (key_documents.empty()) return;
    const auto begin = key_documents.begin() + b * sizes.keys;
    const std::int64_t wanted = query_documents[static_cast<std::size_t>(b * sizes.queries + i)];
    const auto [low, high] = std::equal_range(begin, begin + sizes.keys, wanted);
    first = std::max<std::int64_t>(first, low - begin);
    last = std::min<std::int64_t>(last, high - begin);
  }

  QueryWindow window() const {
    QueryWindow w;
    w.keys = sizes.keys;
    w.first_query = mask.first_query;
    w.causal = mask.causal;
    w.look_back = mask.look_back.value_or(QueryWindow::kEverything);
    w.look_ahead = mask.look_ahead.value_or(QueryWindow::kEverything);
    return w;
  }

  std::pair<std::int64_t, std::int64_t> interval(std::int64_t b, std::int64_t i) const {
    const auto row = static_cast<std::size_t>(b);
    const std::int64_t position =
        i + mask.first_query + (first_queries.empty() ? 0 : first_queries[row]);
    auto [first, last] = window().of(position, prefixes.empty() ? 0 : prefixes[row]);
    if (!lengths.empty()) last = std::min(last, lengths[row]);
    document(b, i, first, last);
    return {first, std::max(first, last)};
  }
};

// Intervals as the host makes them.
struct HostKeys {
  std::vector<std::int32_t> intervals, ends;
  std::int64_t pairs = 0;

  explicit HostKeys(const MaskReader& reader)
      : intervals(static_cast<std::size_t>(2 * reader.sizes.batch * reader.sizes.queries)),
        ends(static_cast<std::size_t>(reader.sizes.batch)) {
    const std::int64_t batch = reader.sizes.batch, queries = reader.sizes.queries;
    std::int32_t* first = intervals.data();
    std::int32_t* last = first + batch * queries;
    std::int64_t own = 0;  // pairs of the sequence
    for (std::int64_t b = 0; b < batch; ++b, first += queries, last += queries, pairs += own) {
      const auto row = static_cast<std::size_t>(b);
      if (b > 0 && !reader.depends_on_batch()) {
        std::copy_n(first - queries, queries, first);
        std::copy_n(last - queries, queries, last);
        ends[row] = ends[row - 1];
        continue;
      }
      own = 0;
      for (std::int64_t i = 0; i < queries; ++i) {
        const auto [from, to] = reader.interval(b, i);
        first[i] = static_cast<std::int32_t>(from);
        last[i] = static_cast<std::int32_t>(to);
        own += to - from;
        if (from < to) ends[row] = std::max(ends[row], last[i]);
      }
    }
  }
};

double pairs_without_values(const AttentionMask& mask, const AttentionSizes& s) {
  const MaskReader reader(mask, s, false);
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const auto [from, to] = reader.interval(0, i);
    pairs += to - from;
  }
  return static_cast<double>(pairs) * static_cast<double>(s.batch);
}

}  // namespace

void validate_mask(const char* op, const AttentionMask& m, const AttentionSizes& s, Device device) {
  constexpr std::int64_t kMost = 0x7fffffff;  // intervals are kept as i32
  if (s.keys > kMost)
    check_condition(false, op, "k", "at most 2^31 - 1 keys", std::to_string(s.keys));
  if (m.first_query < -kMost || m.first_query > kMost)
    check_condition(false, op, "first_query", "-2^31 + 1 to 2^31 - 1",
                    std::to_string(m.first_query));
  if (m.look_back)
    check_condition(*m.look_back >= 0, op, "look_back", "0 or more", std::to_string(*m.look_back));
  if (m.look_ahead) {
    check_condition(*m.look_ahead >= 0, op, "look_ahead", "0 or more",
                    std::to_string(*m.look_ahead));
    check_condition(!m.causal, op, "look_ahead", "no look_ahead beside a causal mask",
                    std::to_string(*m.look_ahead));
  }
  check_condition(!m.prefix_lengths.defined() || m.causal, op, "prefix_lengths",
                  "a causal mask, from which the prefix is excepted", "no causal mask");
  check_condition(m.query_documents.defined() == m.key_documents.defined(), op, "key_documents",
                  "documents of queries and of keys, or of neither", "one of the two");
  check_integers(op, "prefix_lengths", m.prefix_lengths, {s.batch}, device);
  check_integers(op, "key_lengths", m.key_lengths, {s.batch}, device);
  check_integers(op, "query_documents", m.query_documents, {s.batch, s.queries}, device);
  check_integers(op, "key_documents", m.key_documents, {s.batch, s.keys}, device);
  check_integers(op, "first_queries", m.first_queries, {s.batch}, device);
  check_range(op, "prefix_lengths", m.prefix_lengths, 0, s.keys);
  check_range(op, "key_lengths", m.key_lengths, 0, s.keys);
  check_range(op, "first_queries", m.first_queries, -kMost, kMost);
  if (m.key_documents.defined()) check_ascending(op, "key_documents", m.key_documents);
}

void check_options(const char* op, const AttentionOptions& o, const Tensor& q,
                   const AttentionSizes& s) {
  // Strings are made for errors alone: they take as long as the scores of a few rows.
  // Scores are f32, and so are these and the cap's inverse.
  constexpr double kLeast = 1e-30, kMost = 1e30;
  check_number(op, "scale", std::abs(o.scale) <= kMost, "a number from -1e30 to 1e30", o.scale);
  check_number(op, "softcap", o.softcap == 0 || (o.softcap >= kLeast && o.softcap <= kMost),
               "0 (none) or a number from 1e-30 to 1e30", o.softcap);
  check_number(op, "dropout", o.dropout >= 0 && o.dropout < 1, "0 or more and below 1", o.dropout);
  check_number(op, "dropout", !o.apart || o.dropout == 0, "0 beside apart", o.dropout);
  if (o.first_position < 0)
    check_condition(false, op, "first_position", "0 or more", std::to_string(o.first_position));
  if (o.first_row < 0 || o.first_row >= std::max<std::int64_t>(s.keys, 1))
    check_condition(false, op, "first_row", "a row of the " + std::to_string(s.keys) + " keys",
                    std::to_string(o.first_row));
  if (o.relative_bias.defined())
    check_parameter({op, "relative_bias", o.relative_bias}, q,
                    {q.size(2), std::max<std::int64_t>(s.queries + s.keys - 1, 0)});
  if (o.sinks.defined()) {
    check_parameter({op, "sinks", o.sinks}, q, {q.size(2)});
    check_condition(o.normaliser == Normaliser::softmax, op, "sinks",
                    "the softmax normaliser: a sink takes part in its sum", "relu");
  }
  if (o.keys.intervals.defined())
    check_keys(op, o.keys, q, s);
  else
    validate_mask(op, o.mask, s, q.device());
  if (o.additive_mask.defined())
    check_pairs({op, "additive_mask", o.additive_mask}, q, parameter_dtype(q), s);
  if (o.mask.allowed.defined()) check_pairs({op, "allowed", o.mask.allowed}, q, DType::u8, s);
  check_condition(!o.mask.first_queries.defined() || !o.relative_bias.defined(), op,
                  "first_queries",
                  "no bias by distance beside it: distances differ between sequences (an "
                  "additive_mask can hold them)",
                  "relative_bias as well");
}

namespace {

// The same for all sequences, by a device that can.
VisibleKeys keys_by_place(const MaskReader& reader, Device device) {
  const AttentionSizes& s = reader.sizes;
  std::int64_t pairs = 0, end = 0;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const auto [from, to] = reader.interval(0, i);
    pairs += to - from;
    if (from < to) end = std::max(end, to);
  }
  VisibleKeys keys{Tensor::empty({2, s.batch, s.queries}, DType::i32, device),
                   Tensor::empty({s.batch}, DType::i32, device), s.keys,
                   static_cast<double>(pairs) * static_cast<double>(s.batch)};
  if (s.batch > 0 && s.queries > 0)
    backend::launch(IntervalsCall{reader.window(), end, keys.intervals, keys.ends});
  return keys;
}

}  // namespace

VisibleKeys visible_keys(const AttentionMask& mask, const AttentionSizes& s, Device device) {
  if (device.is_meta())
    return {Tensor::empty({2, s.batch, s.queries}, DType::i32, device),
            Tensor::empty({s.batch}, DType::i32, device), s.keys, pairs_without_values(mask, s)};
  const MaskReader reader(mask, s, true);
  if (!reader.depends_on_batch() && s.queries > 0 && backend::has_routine<IntervalsCall>(device))
    return keys_by_place(reader, device);
  const HostKeys keys(reader);
  return {from_host({2, s.batch, s.queries}, keys.intervals, device),
          from_host({s.batch}, keys.ends, device), s.keys, static_cast<double>(keys.pairs)};
}

VisibleKeys prepared_keys(const AttentionMask& mask, const AttentionSizes& s, Device device) {
  validate_mask("attention", mask, s, device);
  return visible_keys(mask, s, device);
}

}  // namespace heddle::ops
