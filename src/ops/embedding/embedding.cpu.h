// Rows picked from a table, and its gradient: rows summed by id.
#include "backend/cpu/row_index.h"
#include "ops/embedding/embedding.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace embedding_detail {

inline void forward(const EmbeddingArgs& a) noexcept {
  for_index(a.id_dtype, [&](auto index) {
    using I = decltype(index);
    for_storage_pair(a.table_dtype, a.out_dtype, [&](auto t, auto o) {
      pick_rows(static_cast<const decltype(t)*>(a.table), static_cast<const I*>(a.ids),
                static_cast<decltype(o)*>(a.y), a.count, a.width, a.stream);
    });
  });
}

inline void backward(const EmbeddingBackwardArgs& a) noexcept {
  for_index(a.id_dtype, [&](auto index) {
    group_by_row(static_cast<const decltype(index)*>(a.ids), a.count, a.rows, a.starts, a.order);
  });
  for_storage_pair(a.table_dtype, a.out_dtype, [&](auto t, auto o) {
    using T = decltype(t);
    using O = decltype(o);
    auto* dtable = static_cast<T*>(a.dtable);
    sum_grouped_rows(RowSum<O, T>{static_cast<const O*>(a.dy), a.add ? dtable : nullptr, dtable,
                                  a.rows, a.width, a.starts, a.order});
  });
}

}  // namespace embedding_detail

const EmbeddingKernels embedding_kernels{embedding_detail::forward};
const EmbeddingGradientKernels embedding_gradient_kernels{embedding_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
