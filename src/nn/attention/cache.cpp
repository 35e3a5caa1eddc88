#include "nn/attention/cache.h"

#include <algorithm>
#include <string>

#include "autograd/record.h"
#include "nn/require.h"
#include "nn/select_rows.h"
#include "ops/copy/copy.h"
#include "ops/support/check.h"

namespace heddle::nn {

namespace {

constexpr const char* kWhere = "kv cache";

// Width of the keys as the fused op takes them.
std::int64_t key_width(const AttentionConfig& c) {
  if (c.score == Score::concat) return 1 + c.heads / c.key_heads();
  if (c.score == Score::additive) return c.width_of_score();
  return c.width_of_head();
}

Tensor rows_of(const Tensor& buffer, std::int64_t begin, std::int64_t end) {
  return views::slice(buffer, 1, begin, end);
}

void write_rows(Tensor& buffer, std::int64_t begin, const Tensor& rows) {
  Tensor place = rows_of(buffer, begin, begin + rows.size(1));
  ops::copy_into(place, rows.detach());
}

}  // namespace

KvCache::KvCache(const AttentionConfig& config, const CacheSize& size, DType dtype, Device device)
    : size_(size) {
  validate_cached(config);
  require(size.batch > 0, kWhere, "batch", "1 or more", static_cast<double>(size.batch));
  require(size.positions > 0, kWhere, "positions", "1 or more",
          static_cast<double>(size.positions));
  require(size.block > 0, kWhere, "block", "1 or more", static_cast<double>(size.block));
  if (config.cross) return;  // holds what it is given
  capacity_ = size.positions;
  if (config.look_back && *config.look_back < capacity_ - size.block) {
    look_back_ = *config.look_back;
    capacity_ = look_back_ + size.block;
  }
  const std::int64_t groups = config.key_heads();
  k_ = Tensor::zeros({size.batch, capacity_, groups, key_width(config)}, dtype, device);
  v_ = Tensor::zeros({size.batch, capacity_, groups, config.width_of_head()}, dtype, device);
}

void KvCache::check_block(const Tensor& k, const Tensor& v, const Tensor& documents) const {
  if (autograd::tracked({&k, &v}))
    fail(ErrorCode::autograd, kWhere, "keys and values on a tape",
         "no gradients through a cache: use NoGrad, or no cache");
  if (!k_.defined())
    fail(ErrorCode::invalid_argument, kWhere, "a cache of cross-attention", "hold()", "append()");
  const std::int64_t n = k.size(1);
  ops::check_dtype({kWhere, "k", k}, k_.dtype());
  ops::check_dtype({kWhere, "v", v}, v_.dtype());
  ops::check_shape({kWhere, "k", k}, {size_.batch, n, k_.size(2), k_.size(3)});
  ops::check_shape({kWhere, "v", v}, {size_.batch, n, v_.size(2), v_.size(3)});
  if (documents.defined()) ops::check_shape({kWhere, "documents", documents}, {size_.batch, n});
  if (!empty() && documents.defined() != documents_.defined())
    fail(ErrorCode::invalid_argument, kWhere, "documents", "in every call or in none",
         documents.defined() ? "for the first time after other tokens" : "none");
  if (n > size_.positions - next_)
    fail(ErrorCode::out_of_range, kWhere, "the cache is full",
         std::to_string(size_.positions) + " positions", std::to_string(next_ + n));
  if (look_back_ >= 0 && n > size_.block)
    fail(ErrorCode::out_of_range, kWhere, "too many tokens at once",
         "blocks of at most " + std::to_string(size_.block), std::to_string(n));
}

void KvCache::make_room(std::int64_t tokens) {
  if (stored_ + tokens <= capacity_) return;
  const std::int64_t kept = std::min(look_back_, stored_);
  for (Tensor* buffer : {&k_, &v_, &documents_}) {
    if (!buffer->defined()) continue;
    // Source and destination may overlap.
    const Tensor last = ops::clone(rows_of(*buffer, stored_ - kept, stored_));
    write_rows(*buffer, 0, last);
  }
  stored_ = kept;
}

void KvCache::append(const Tensor& k, const Tensor& v, const Tensor& documents) {
  check_block(k, v, documents);
  const std::int64_t n = k.size(1);
  if (documents.defined() && !documents_.defined())
    documents_ = Tensor::zeros({size_.batch, capacity_}, DType::i64, k_.device());
  make_room(n);
  write_rows(k_, stored_, k);
  write_rows(v_, stored_, v);
  if (documents.defined()) write_rows(documents_, stored_, documents);
  stored_ += n;
  next_ += n;
}

void KvCache::hold(const Tensor& k, const Tensor& v, const Tensor& documents) {
  if (autograd::tracked({&k, &v}))
    fail(ErrorCode::autograd, kWhere, "keys and values on a tape",
         "no gradients through a cache: use NoGrad, or no cache");
  if (capacity_ > 0)
    fail(ErrorCode::invalid_argument, kWhere, "a cache of self-attention", "append()", "hold()");
  ops::check_shape({kWhere, "k", k}, {size_.batch, k.size(1), k.size(2), k.size(3)});
  k_ = k.detach();
  v_ = v.detach();
  documents_ = documents.defined() ? documents.detach() : documents;
  stored_ = next_ = k.size(1);
}

void KvCache::clear() {
  stored_ = next_ = 0;
  documents_ = {};
  if (capacity_ == 0) k_ = v_ = {};
}

void KvCache::reorder(std::span<const std::int64_t> rows) {
  require(!rows.empty(), kWhere, "rows", "1 or more", 0);
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

Tensor KvCache::keys() const { return rows_of(k_, 0, stored_); }
Tensor KvCache::values() const { return rows_of(v_, 0, stored_); }
Tensor KvCache::documents() const {
  return documents_.defined() ? rows_of(documents_, 0, stored_) : documents_;
}

}  // namespace heddle::nn
