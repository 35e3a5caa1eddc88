#include "distributed/sharded_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "autograd/accumulate.h"
#include "base/divide.h"
#include "heddle/memory.h"

namespace heddle::distributed {

namespace {

constexpr const char* kSumming = "summing gradients";

Tensor floats(std::int64_t count, Purpose purpose, Device device) {
  const PurposeScope scope(purpose);
  return Tensor::empty({count}, DType::f32, device);
}

Tensor run_of(const Tensor& flat, std::int64_t begin, std::int64_t count) {
  return views::slice(flat, 0, begin, begin + count);
}

Bytes bytes_of_run(const Tensor& flat, std::int64_t begin, std::int64_t count) {
  return std::as_bytes(std::span(flat.data<float>() + begin, static_cast<std::size_t>(count)));
}

}  // namespace

ShardedSum::ShardedSum(Communicator& group, std::span<const Shards> buckets, std::int64_t parts,
                       Device device)
    : group_(group),
      buckets_(buckets),
      parts_(parts),
      device_(device),
      sums_(buckets.size(), TreeSum<Term>(parts)),
      values_(buckets.front().tensors()),
      given_(values_.size(), false) {
  for (const Shards& shards : buckets_) slices_.push_back(shards.slices());
}

std::int64_t ShardedSum::rounds() const { return ceil_div(parts_, group_.size()); }

std::optional<std::int64_t> ShardedSum::part_in(std::int64_t round) const {
  const std::int64_t part = round * group_.size() + group_.rank();
  return part < parts_ ? std::optional(part) : std::nullopt;
}

std::int64_t ShardedSum::senders() const {
  return std::min<std::int64_t>(group_.size(), parts_ - round_ * group_.size());
}

void ShardedSum::give(std::size_t tensor, Tensor value) {
  values_[tensor] = std::move(value);
  given_[tensor] = true;
  start_complete();
  group_.go_on();
}

void ShardedSum::end_round() {
  given_.assign(given_.size(), true);
  start_complete();
  given_.assign(given_.size(), false);
  values_.assign(values_.size(), Tensor());
  next_ = 0;
  ++round_;
}

void ShardedSum::start_complete() {
  for (; next_ < buckets_.size() && complete(next_); ++next_) start(next_);
}

bool ShardedSum::complete(std::size_t bucket) const {
  return std::ranges::all_of(slices_[bucket], [this](const Slice& s) { return given_[s.tensor]; });
}

void ShardedSum::start(std::size_t bucket) {
  land();
  const Shards& shards = buckets_[bucket];
  const std::int64_t own = shards.of(group_.rank()).count();
  Flight flight{bucket, round_ * group_.size(), senders(), packed(bucket),
                floats(senders() * own, Purpose::workspace, device_)};
  if (!device_.is_meta()) {
    std::vector<Bytes> sent(static_cast<std::size_t>(group_.size()));
    std::vector<MutableBytes> received(sent.size());
    float* row = flight.in.mutable_data<float>();
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      const Range theirs = shards.of(rank);
      if (sends())
        sent[i] = bytes_of_run(flight.out, theirs.begin - shards.all().begin, theirs.count());
      if (rank >= senders()) continue;
      received[i] = std::as_writable_bytes(std::span(row, static_cast<std::size_t>(own)));
      row += own;
    }
    group_.begin_all_to_all(sent, received, kSumming);
  }
  flight_ = std::move(flight);
}

// The bucket in one piece, and its tensors given up: one that goes on in an earlier bucket, which
// comes later, is still wanted there.
Tensor ShardedSum::packed(std::size_t bucket) {
  if (!sends()) return {};
  Tensor all = floats(buckets_[bucket].elements(), Purpose::workspace, device_);
  float* to = device_.is_meta() ? nullptr : all.mutable_data<float>();
  for (const Slice& s : slices_[bucket]) {
    Tensor& value = values_[s.tensor];
    if (to != nullptr) {
      const std::size_t bytes = static_cast<std::size_t>(s.count()) * sizeof(float);
      if (value.defined())
        std::memcpy(to, value.data<float>() + s.begin, bytes);
      else
        std::memset(to, 0, bytes);
      to += s.count();
    }
    if (s.begin == 0) value = Tensor();
  }
  return all;
}

// The one that is under way comes to its end.
void ShardedSum::land() {
  if (!flight_) return;
  group_.finish();
  flight_->out = Tensor();
  add_up(*flight_);
  flight_.reset();
}

void ShardedSum::add_up(const Flight& flight) {
  TreeSum<Term>& sum = sums_[flight.bucket];
  const std::int64_t own = buckets_[flight.bucket].of(group_.rank()).count();
  if (own == 0) return;
  for (std::int64_t i = 0; i < flight.parts; ++i)
    sum.push({0, flight.first + i}, Term{run_of(flight.in, i * own, own)},
             [](Term& left, const Term& right) {
               autograd::copy_values(left.value, right.value, true);
             });
  for (auto& [node, term] : sum.held()) {
    if (term.kept) continue;
    Tensor copy = floats(own, Purpose::gradients, device_);
    autograd::copy_values(copy, term.value, false);
    term = {copy, true};
  }
}

std::vector<Tensor> ShardedSum::take() {
  land();
  std::vector<Tensor> all;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    std::int64_t at = 0;
    for (const Slice& s : buckets_[b].slices(buckets_[b].of(group_.rank()))) {
      all.push_back(run_of(sums_[b].held().front().second.value, at, s.count()));
      at += s.count();
    }
  }
  return all;
}

}  // namespace heddle::distributed
