// Linked into a second program `heddle`, whose kernels have one fault. `heddle check` must find it.
// The environment variable HEDDLE_FAULT says which; tests/campaign/faults.py knows where each of
// them shows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/kernels.h"
#include "ops/attention/attention.kernels.h"
#include "ops/elman/elman.kernels.h"
#include "ops/embedding/embedding.kernels.h"
#include "ops/gather/gather.kernels.h"
#include "ops/glu/glu.kernels.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"
#include "ops/norm/norm.kernels.h"
#include "ops/rope/rope.kernels.h"

namespace heddle {
namespace {

template <class K>
const K& sound() {
  return cpu::native_kernels<K>(cpu::current_isa());
}

// A table with `change`d functions in place of the sound one.
template <class K>
void plant(void (*change)(K&)) {
  static K table;
  table = cpu::native_kernels<K>(cpu::Isa::generic);
  change(table);
  cpu::planted_kernels<K> = &table;
}

// Dropped term: a norm forgets the residual stream's gradient.
void residual_gradient(cpu::NormGradientKernels& k) {
  k.backward = [](const cpu::NormBackwardArgs& a) noexcept {
    cpu::NormBackwardArgs b = a;
    b.dsum = nullptr;
    sound<cpu::NormGradientKernels>().backward(b);
  };
}

// Tail: the very last element of a norm's results.
void tail_element(cpu::NormKernels& k) {
  k.forward = [](const cpu::NormArgs& a) noexcept {
    sound<cpu::NormKernels>().forward(a);
    const std::size_t size = size_of(a.dtype);
    auto* y = static_cast<char*>(a.y);
    std::fill_n(y + static_cast<std::size_t>(a.rows * a.columns - 1) * size, size, '\0');
  };
}

// The inputs that a faulty attention reads instead of its own.
struct Changed {
  cpu::AttentionArgs args;
  std::vector<std::int32_t> first, last;
  std::vector<double> sinks64;
  std::vector<float> sinks32;

  explicit Changed(const cpu::AttentionArgs& a) : args(a) {
    const std::int64_t rows = a.shape.batch * a.shape.queries;
    first.assign(a.first_key, a.first_key + rows);
    last.assign(a.last_key, a.last_key + rows);
    args.first_key = first.data();
    args.last_key = last.data();
  }

  template <class T>
  void move_sinks(std::vector<T>& own) {
    const auto* s = static_cast<const T*>(args.sinks);
    own.assign(s, s + args.shape.heads);
    for (T& sink : own) sink += T(0.01);
    args.sinks = own.data();
  }
};

using ChangeAttention = void (*)(Changed&);

// In both directions alike: differences agree, and so do all settings.
template <ChangeAttention change>
void attention(cpu::AttentionKernels& k) {
  k.forward = [](const cpu::AttentionArgs& a) noexcept {
    Changed c(a);
    change(c);
    sound<cpu::AttentionKernels>().forward(c.args);
  };
}
template <ChangeAttention change>
void attention_gradient(cpu::AttentionGradientKernels& k) {
  k.backward = [](const cpu::AttentionBackwardArgs& a) noexcept {
    Changed c(a.forward);
    change(c);
    cpu::AttentionBackwardArgs b = a;
    b.forward = c.args;
    sound<cpu::AttentionGradientKernels>().backward(b);
  };
}

void wrong_scale(Changed& c) { c.args.scale *= 1.01; }
void wrong_cap(Changed& c) { c.args.softcap *= 1.01; }
void wrong_sink(Changed& c) {
  if (c.args.sinks == nullptr) return;
  if (c.args.dtype == DType::f64)
    c.move_sinks(c.sinks64);
  else
    c.move_sinks(c.sinks32);
}
void early_key(Changed& c) {
  for (std::int32_t& key : c.first) key -= key > 0 ? 1 : 0;
}
void late_key(Changed& c) {
  for (std::int32_t& key : c.last) key += key < c.args.shape.keys ? 1 : 0;
}
void missing_last_key(Changed& c) {
  for (std::size_t i = 0; i < c.last.size(); ++i) c.last[i] -= c.last[i] - c.first[i] > 1 ? 1 : 0;
}

// Half of a head's width or neighbours: which two numbers turn together.
void swapped_pairs(cpu::RopeKernels& k) {
  k.rotate = [](const cpu::RopeArgs& a) noexcept {
    cpu::RopeArgs b = a;
    b.interleaved = !b.interleaved;
    sound<cpu::RopeKernels>().rotate(b);
  };
}

void missing_bias(cpu::ProductKernels& k) {
  k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
    cpu::GemmJob b = job;
    b.epilogue.bias = nullptr;
    sound<cpu::ProductKernels>().run(t, b);
  };
}

void swapped_gate(cpu::GluKernels& k) {
  k.forward = [](const cpu::GluArgs& a) noexcept {
    cpu::GluArgs b = a;
    std::swap(b.gate, b.up);
    sound<cpu::GluKernels>().forward(b);
  };
}
void swapped_gate_gradient(cpu::GluGradientKernels& k) {
  k.backward = [](const cpu::GluBackwardArgs& a) noexcept {
    cpu::GluBackwardArgs b = a;
    std::swap(b.gate, b.up);
    std::swap(b.dgate, b.dup);
    sound<cpu::GluGradientKernels>().backward(b);
  };
}

void other_direction(cpu::ElmanKernels& k) {
  k.forward = [](const cpu::ElmanArgs& a) noexcept {
    cpu::ElmanArgs b = a;
    b.scan.reverse = !b.scan.reverse;
    sound<cpu::ElmanKernels>().forward(b);
  };
}
void other_direction_gradient(cpu::ElmanGradientKernels& k) {
  k.backward = [](const cpu::ElmanBackwardArgs& a) noexcept {
    cpu::ElmanBackwardArgs b = a;
    b.scan.reverse = !b.scan.reverse;
    sound<cpu::ElmanGradientKernels>().backward(b);
  };
  k.previous = [](const cpu::ElmanPreviousArgs& a) noexcept {
    cpu::ElmanPreviousArgs b = a;
    b.scan.reverse = !b.scan.reverse;
    sound<cpu::ElmanGradientKernels>().previous(b);
  };
}

void wrong_smoothing(cpu::LinearCrossEntropyKernels& k) {
  k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
    cpu::CrossEntropyArgs b = a;
    b.smoothing += 0.01;
    sound<cpu::LinearCrossEntropyKernels>().rows(b);
  };
}

// The first token gives its row of the table no gradient.
void lost_token(cpu::EmbeddingGradientKernels& k) {
  k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
    cpu::EmbeddingBackwardArgs b = a;
    if (b.count > 0) {
      --b.count;
      b.ids = static_cast<const char*>(a.ids) + size_of(a.id_dtype);
      b.dy =
          static_cast<const char*>(a.dy) + static_cast<std::size_t>(a.width) * size_of(a.out_dtype);
    }
    sound<cpu::EmbeddingGradientKernels>().backward(b);
  };
}

// Loses an expert's output for the first of its tokens.
void lost_row(cpu::GatherKernels& k) {
  k.index_add = [](const cpu::IndexAddArgs& a) noexcept {
    cpu::IndexAddArgs b = a;
    if (b.count > 0) {
      --b.count;
      b.index = static_cast<const char*>(a.index) + size_of(a.index_dtype);
      b.source =
          static_cast<const char*>(a.source) + static_cast<std::size_t>(a.width) * size_of(a.dtype);
    }
    sound<cpu::GatherKernels>().index_add(b);
  };
}

struct Fault {
  std::string_view name;
  void (*plant)();
};

template <ChangeAttention change>
void plant_attention() {
  plant<cpu::AttentionKernels>(attention<change>);
  plant<cpu::AttentionGradientKernels>(attention_gradient<change>);
}

// In both directions.
template <class K, class G>
void plant(void (*change)(K&), void (*change_gradient)(G&)) {
  plant<K>(change);
  plant<G>(change_gradient);
}

const Fault kFaults[] = {
    {"residual-gradient", [] { plant<cpu::NormGradientKernels>(residual_gradient); }},
    {"tail-element", [] { plant<cpu::NormKernels>(tail_element); }},
    {"wrong-scale", plant_attention<wrong_scale>},
    {"wrong-cap", plant_attention<wrong_cap>},
    {"wrong-sink", plant_attention<wrong_sink>},
    {"early-key", plant_attention<early_key>},
    {"late-key", plant_attention<late_key>},
    {"missing-last-key", plant_attention<missing_last_key>},
    {"swapped-pairs", [] { plant<cpu::RopeKernels>(swapped_pairs); }},
    {"missing-bias", [] { plant<cpu::ProductKernels>(missing_bias); }},
    {"swapped-gate", [] { plant(swapped_gate, swapped_gate_gradient); }},
    {"other-direction", [] { plant(other_direction, other_direction_gradient); }},
    {"wrong-smoothing", [] { plant<cpu::LinearCrossEntropyKernels>(wrong_smoothing); }},
    {"lost-token", [] { plant<cpu::EmbeddingGradientKernels>(lost_token); }},
    {"lost-row", [] { plant<cpu::GatherKernels>(lost_row); }},
};

const bool kPlanted = [] {
  const char* chosen = std::getenv("HEDDLE_FAULT");
  const std::string_view name = chosen != nullptr ? chosen : kFaults[0].name;
  const auto* found = std::ranges::find(kFaults, name, &Fault::name);
  if (found == std::end(kFaults)) {
    std::fprintf(stderr, "HEDDLE_FAULT: there is no %s\n", chosen);
    std::_Exit(3);  // neither right nor wrong
  }
  found->plant();
  return true;
}();

}  // namespace
}  // namespace heddle
