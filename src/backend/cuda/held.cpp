#include "backend/cuda/held.h"

#include <initializer_list>
#include <utility>

namespace heddle::cuda {

bool Extent::meets(const Extent& other) const {
  if (data == nullptr || other.data == nullptr) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const auto other_begin = reinterpret_cast<std::uintptr_t>(other.data);
  return begin < other_begin + static_cast<std::uintptr_t>(other.bytes) &&
         other_begin < begin + static_cast<std::uintptr_t>(bytes);
}

namespace {

bool apart(std::initializer_list<Extent> written, std::initializer_list<Extent> read) {
  for (const Extent& w : written)
    for (const Extent& r : read)
      if (w.meets(r)) return false;
  return true;
}

Extent rows(const void* data, std::int64_t count) {
  return {data, count * static_cast<std::int64_t>(sizeof(bf16))};
}

// No block of the joined kernel may overwrite what another one still reads.
bool may_join(const FewNorm& n, const FewProduct& p) {
  if (n.y != p.x || n.rows != p.m || n.columns != p.k || p.x_stride != p.k || p.residual != nullptr)
    return false;
  const std::int64_t count = std::int64_t{n.rows} * n.columns;
  for (int i = 0; i < p.parts; ++i) {
    const FewPart& part = p.part[static_cast<std::size_t>(i)];
    const Extent y{part.y, std::int64_t{p.m} * part.n * (p.wide ? 4 : 2)};
    if (!apart({y}, {rows(n.x, count), rows(n.residual, count)})) return false;
  }
  return apart({rows(n.sum, count), rows(n.y, count)}, {rows(n.x, count), rows(n.residual, count)});
}

bool may_be_gated(const FewProduct& p) {
  return p.parts == 1 && !p.wide && p.activation == Activation::none && p.residual == nullptr &&
         p.part[0].n % 16 == 0;
}

}  // namespace

void HeldWork::let_go(cudaStream_t stream) {
  switch (std::exchange(kind_, Kind::none)) {
    case Kind::none: return;
    case Kind::norm: return launch_few(norm_, stream);
    case Kind::product: return launch_few(product_, stream);
    case Kind::step: break;
  }
  const FewStep step = std::exchange(step_, {});
  for (int i = 0; i < step.ropes; ++i) step.rope[static_cast<std::size_t>(i)].plain(stream);
  for (int i = 0; i < step.puts; ++i) step.put[static_cast<std::size_t>(i)].plain(stream);
}

void HeldWork::hold(const FewNorm& norm, cudaStream_t stream) {
  let_go(stream);
  norm_ = norm;
  kind_ = Kind::norm;
}

void HeldWork::hold(const FewRope& rope, cudaStream_t stream) {
  if (kind_ != Kind::step || step_.puts > 0 || step_.ropes == 2) let_go(stream);
  step_.rope[static_cast<std::size_t>(step_.ropes++)] = rope;
  kind_ = Kind::step;
}

void HeldWork::hold(const FewPut& put, cudaStream_t stream) {
  if (kind_ != Kind::step || step_.puts == 2) let_go(stream);
  step_.put[static_cast<std::size_t>(step_.puts++)] = put;
  kind_ = Kind::step;
}

void HeldWork::run(const FewProduct& product, cudaStream_t stream) {
  FewProduct own = product;
  if (kind_ == Kind::norm && may_join(norm_, product)) {
    own.norm = norm_;
    kind_ = Kind::none;
  }
  let_go(stream);
  if (!may_be_gated(own)) return launch_few(own, stream);
  product_ = own;
  kind_ = Kind::product;
}

bool HeldWork::gate(const FewProduct& how, const bf16* gate, cudaStream_t stream) {
  const std::int64_t count = std::int64_t{how.m} * how.part[0].n / 2;
  const FewNorm& n = product_.norm;
  const std::int64_t in = std::int64_t{product_.m} * product_.k;
  const bool joins =
      kind_ == Kind::product && product_.part[0].y == gate && product_.m == how.m &&
      product_.part[0].n == how.part[0].n &&
      apart({rows(how.gated, count)}, {rows(product_.x, in), rows(n.x, in), rows(n.residual, in),
                                       rows(n.sum, in), rows(product_.part[0].y, 2 * count)});
  if (!joins) {
    let_go(stream);
    return false;
  }
  product_.gated = how.gated;
  product_.gate = how.gate;
  product_.limit = how.limit;
  let_go(stream);
  return true;
}

std::optional<FewStep> HeldWork::take_step(const bf16* q, const bf16* keys, const bf16* values,
                                           cudaStream_t stream) {
  const FewStep& s = step_;
  const bool turned = s.ropes == 2 && s.rope[0].y == q && s.rope[1].y == s.put[0].x &&
                      s.rope[0].at == s.put[0].at && s.rope[1].at == s.put[0].at &&
                      s.rope[0].pairs == s.rope[1].pairs && s.rope[0].cos == s.rope[1].cos &&
                      s.rope[0].interleaved == s.rope[1].interleaved;
  const bool whole = kind_ == Kind::step && s.puts == 2 && (turned || s.ropes == 0) &&
                     s.put[0].ring == keys && s.put[1].ring == values &&
                     s.put[0].at == s.put[1].at && s.put[0].rows == s.put[1].rows &&
                     s.put[0].width == s.put[1].width;
  if (!whole) {
    let_go(stream);
    return std::nullopt;
  }
  kind_ = Kind::none;
  return std::exchange(step_, {});
}

void HeldWork::put_back(FewStep step) {
  step_ = std::move(step);
  kind_ = Kind::step;
}

}  // namespace heddle::cuda
