#include "nn/attention/cache.h"

#include <algorithm>
#include <array>
#include <string>

#include "autograd/record.h"
#include "nn/require.h"
#include "nn/select_rows.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/support/check.h"

namespace heddle::nn {

namespace {

constexpr const char* kKvCache = "kv cache";

// Width of the keys as the fused op takes them.
std::int64_t key_width(const AttentionConfig& c) {
  if (c.score == Score::concat) return 1 + c.heads / c.key_heads();
  if (c.score == Score::additive) return c.width_of_score();
  return c.width_of_head();
}

// Rows that a cache begins with.
constexpr std::int64_t kFirstRows = 64;

Tensor rows_of(const Tensor& buffer, std::int64_t begin, std::int64_t end) {
  return views::slice(buffer, 1, begin, end);
}

// Writes rows from `begin` on, around the end of the ring.
void write_rows(Tensor& ring, std::int64_t begin, const Tensor& rows) {
  const std::int64_t n = rows.size(1);
  const std::int64_t before = std::min(n, ring.size(1) - begin);
  Tensor place = rows_of(ring, begin, begin + before);
  ops::copy_into(place, rows_of(rows.detach(), 0, before));
  if (before == n) return;
  Tensor rest = rows_of(ring, 0, n - before);
  ops::copy_into(rest, rows_of(rows.detach(), before, n));
}

}  // namespace

KvCache::KvCache(const AttentionConfig& config, const CacheSize& size, DType dtype, Device device)
    : size_(size) {
  validate_cached(config);
  require(size.batch > 0, kKvCache, "batch", "1 or more", static_cast<double>(size.batch));
  require(size.positions > 0, kKvCache, "positions", "1 or more",
          static_cast<double>(size.positions));
  require(size.block > 0, kKvCache, "block", "1 or more", static_cast<double>(size.block));
  cross_ = config.cross;
  if (cross_) return;  // holds what it is given
  capacity_ = size.positions;
  if (config.look_back && *config.look_back < capacity_ - size.block) {
    look_back_ = *config.look_back;
    capacity_ = look_back_ + size.block;
  }
  const std::int64_t groups = config.key_heads();
  const std::int64_t rows = std::min(capacity_, kFirstRows);
  k_ = Tensor::zeros({size.batch, rows, groups, key_width(config)}, dtype, device);
  v_ = Tensor::zeros({size.batch, rows, groups, config.width_of_head()}, dtype, device);
}

// The ring turns only when all of its rows are there, so that the tokens in a part of it lie in
// order and stay where they are. One buffer after the other: old and new exist together for one.
void KvCache::take_rows(std::int64_t needed) {
  const std::int64_t before = k_.size(1);
  if (needed <= before) return;
  const std::int64_t rows = std::min(capacity_, std::max(needed, 2 * before));
  for (Tensor* buffer : {&k_, &v_, &documents_}) {
    if (!buffer->defined()) continue;
    Shape shape = buffer->shape();
    shape[1] = rows;
    Tensor more = Tensor::zeros(shape, buffer->dtype(), buffer->device());
    if (next_ > 0) {  // rows after next_ hold nothing valid
      Tensor place = rows_of(more, 0, next_);
      ops::copy_into(place, rows_of(*buffer, 0, next_));
    }
    *buffer = more;
  }
}

void KvCache::check_block(const Tensor& k, const Tensor& v, const Tensor& documents) const {
  if (autograd::tracked({&k, &v}))
    fail(ErrorCode::autograd, kKvCache, "keys and values on a tape",
         "no gradients through a cache: use NoGrad, or no cache");
  if (cross_)
    fail(ErrorCode::invalid_argument, kKvCache, "a cache of cross-attention", "hold()", "append()");
  const std::int64_t n = k.size(1);
  ops::check_dtype({kKvCache, "k", k}, k_.dtype());
  ops::check_dtype({kKvCache, "v", v}, v_.dtype());
  ops::check_shape({kKvCache, "k", k}, {size_.batch, n, k_.size(2), k_.size(3)});
  ops::check_shape({kKvCache, "v", v}, {size_.batch, n, v_.size(2), v_.size(3)});
  if (documents.defined()) ops::check_shape({kKvCache, "documents", documents}, {size_.batch, n});
  if (!empty() && documents.defined() != documents_.defined())
    fail(ErrorCode::invalid_argument, kKvCache, "documents", "in every call or in none",
         documents.defined() ? "for the first time after other tokens" : "none");
  if (n > size_.positions - next_)
    fail(ErrorCode::out_of_range, kKvCache, "the cache is full",
         std::to_string(size_.positions) + " positions", std::to_string(next_ + n));
  if (look_back_ >= 0 && n > size_.block)
    fail(ErrorCode::out_of_range, kKvCache, "too many tokens at once",
         "blocks of at most " + std::to_string(size_.block), std::to_string(n));
}

CachedRows KvCache::stage(const Tensor& k, const Tensor& v, const Tensor& documents) {
  check_block(k, v, documents);
  staged_ = k.size(1);
  if (empty()) documents_ = {};
  take_rows(std::min(next_ + staged_, capacity_));
  if (documents.defined() && !documents_.defined())
    documents_ = Tensor::zeros({size_.batch, k_.size(1)}, DType::i64, documents.device());
  if (staged_ > 0) {
    written_ = std::max(written_, next_ + staged_);
    const std::int64_t row = next_ % capacity_;
    write_rows(k_, row, k);
    write_rows(v_, row, v);
    if (documents.defined()) write_rows(documents_, row, documents);
  }
  return rows_until(next_ + staged_);
}

bool KvCache::can_step() const {
  return !cross_ && !documents_.defined() && next_ > 0 && next_ < capacity_ &&
         next_ < size_.positions;
}

CachedRows KvCache::put(const Tensor& k, const Tensor& v, const Tensor& at) {
  check_block(k, v, {});
  ops::put_row(k_, at, k.contiguous() ? k.detach() : ops::contiguous(k.detach()));
  ops::put_row(v_, at, v.contiguous() ? v.detach() : ops::contiguous(v.detach()));
  CachedRows out;
  out.keys = k_;
  out.values = v_;
  return out;
}

void KvCache::commit() {
  counted(next_ + staged_);
  staged_ = 0;
}

void KvCache::append(const Tensor& k, const Tensor& v, const Tensor& documents) {
  stage(k, v, documents);
  commit();
}

void KvCache::hold(const Tensor& k, const Tensor& v, const Tensor& documents) {
  if (autograd::tracked({&k, &v}))
    fail(ErrorCode::autograd, kKvCache, "keys and values on a tape",
         "no gradients through a cache: use NoGrad, or no cache");
  if (!cross_)
    fail(ErrorCode::invalid_argument, kKvCache, "a cache of self-attention", "append()", "hold()");
  ops::check_shape({kKvCache, "k", k}, {size_.batch, k.size(1), k.size(2), k.size(3)});
  k_ = k.detach();
  v_ = v.detach();
  documents_ = documents.defined() ? documents.detach() : documents;
  capacity_ = next_ = k.size(1);
  held_ = true;
}

void KvCache::clear() {
  next_ = written_ = staged_ = 0;
  held_ = false;
  documents_ = {};
  if (cross_) k_ = v_ = {};
}

// A ring of look_back + block rows holds the tokens from written - look_back - block on, whatever
// was taken back since: a row is overwritten by the token that is tried, not by the one that is
// kept. The token at `position` sees those from position - look_back on: they are all there if
// written - position <= block.
bool KvCache::can_rewind(std::int64_t position) const {
  if (cross_) return true;  // a memory has no order
  if (position < 0 || position > next_) return false;
  return written_ <= capacity_ || written_ - position <= capacity_ - look_back_;
}

void KvCache::rewind(std::int64_t position) {
  if (!can_rewind(position))
    fail(ErrorCode::out_of_range, kKvCache, "position to go back to",
         "one that the cache still holds", std::to_string(position));
  if (cross_) return;
  next_ = position;
  staged_ = 0;
}

void KvCache::reorder(std::span<const std::int64_t> rows) {
  require(!rows.empty(), kKvCache, "rows", "1 or more", 0);
  for (Tensor* buffer : {&k_, &v_, &documents_})
    if (buffer->defined()) *buffer = select_rows(*buffer, rows);
  size_.batch = static_cast<std::int64_t>(rows.size());
}

std::int64_t KvCache::bytes() const {
  std::int64_t sum = 0;
  for (const Tensor* t : {&k_, &v_, &documents_})
    if (t->defined()) sum += static_cast<std::int64_t>(t->bytes());
  return sum;
}

std::int64_t KvCache::most_bytes() const {
  return cross_ ? bytes() : bytes() / k_.size(1) * capacity_;
}

CachedRows KvCache::rows_until(std::int64_t end) const {
  const std::int64_t rows = std::min(end, capacity_);
  CachedRows out;
  out.first_position = end - rows;
  out.first_row = end > rows ? end % capacity_ : 0;
  out.keys = rows_of(k_, 0, rows);
  out.values = rows_of(v_, 0, rows);
  if (!documents_.defined()) return out;
  const std::array parts = {rows_of(documents_, out.first_row, rows),
                            rows_of(documents_, 0, out.first_row)};
  out.documents = out.first_row == 0 ? parts[0] : ops::concat(parts, 1);
  return out;
}

}  // namespace heddle::nn
