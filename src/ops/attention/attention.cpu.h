// Attention tile by tile, forward and backward: every path that a call may take, and when.
//
//   forward      where                                                     in cpu/
//   decode       a few queries against many keys, as in generation         decode.cpu.h
//   short heads  transposed (next line), one block of queries, many heads  transposed.cpu.h
//   transposed   bf16 on AMX tiles; no dropout, no cap, no mask of pairs   transposed.cpu.h
//   apart        inference (AttentionOptions::apart): sums as decode's     apart.cpu.h
//   general      everything else                                           forward.cpu.h
//
//   backward     where                                                     in cpu/
//   whole heads  bf16 on AMX tiles, plain scores, no dropout and no sink,  whole_head.cpu.h
//                at most 256 tokens
//   long heads   the same with more tokens, sinks too                      long_head.cpu.h
//   general      everything else                                           backward_tiles.cpu.h
//
// AMX tiles are used where both widths fill them and the score is a product (on_tiles()). The
// general paths use them for their products too; scores, masks and weights are as elsewhere.
#include "backend/cpu/own_storage.h"
#include "ops/attention/attention.kernels.h"
#include "ops/attention/cpu/apart.cpu.h"
#include "ops/attention/cpu/backward_tiles.cpu.h"
#include "ops/attention/cpu/decode.cpu.h"
#include "ops/attention/cpu/forward.cpu.h"
#include "ops/attention/cpu/long_head.cpu.h"
#include "ops/attention/cpu/transposed.cpu.h"
#include "ops/attention/cpu/whole_head.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

enum class ForwardPath : std::uint8_t { decode, apart, short_heads, transposed, general };

template <class S>
ForwardPath forward_path(const Problem<S>& p) {
  if (few_queries(p.s)) return ForwardPath::decode;
  if (p.a.apart) return ForwardPath::apart;
  if (!transposed(p)) return ForwardPath::general;
  return short_heads(p) ? ForwardPath::short_heads : ForwardPath::transposed;
}

template <Types kTypes>
void forward(const AttentionArgs& args) noexcept {
  for_types<kTypes, AttentionKernels>(args.dtype, &AttentionKernels::forward, args, [&](auto s) {
    const Problem<decltype(s)> p(args);
    switch (forward_path(p)) {
      case ForwardPath::decode: return decode_all(p);
      case ForwardPath::apart: return forward_apart(p);
      case ForwardPath::short_heads: return forward_short_heads(p);
      case ForwardPath::transposed: return forward_transposed(p);
      case ForwardPath::general: return forward_general(p);
    }
  });
}

// Sequences with few queries share one round of threads; any other is a round of its own.
template <Types kTypes>
void forward_each(const AttentionParts& parts) noexcept {
  using K = AttentionKernels;
  for_types<kTypes, K>(parts.args[0].dtype, &K::forward_each, parts, [&](auto s) {
    decode_each<decltype(s)>(parts);
    for (std::int64_t i = 0; i < parts.count; ++i)
      if (!few_queries(parts.args[i].shape)) forward<kTypes>(parts.args[i]);
  });
}

inline void backward(const AttentionBackwardArgs& args) noexcept {
  using K = AttentionGradientKernels;
  for_own_storage<K>(args.forward.dtype, &K::backward, args, [&](auto s) {
    const BackwardProblem<decltype(s)> g(args);
    switch (backward_path(args.forward)) {
      case BackwardPath::whole_heads: return backward_whole_heads(g);
      case BackwardPath::long_heads: return backward_long_heads(g);
      case BackwardPath::general: return backward_general(g);
    }
  });
}

}  // namespace attention_detail

const AttentionKernels attention_kernels{attention_detail::forward<Types::narrow>,
                                         attention_detail::forward_each<Types::narrow>};
const AttentionKernels attention_f64_kernels{attention_detail::forward<Types::f64>,
                                             attention_detail::forward_each<Types::f64>};
const AttentionGradientKernels attention_gradient_kernels{attention_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
