// A row of a cache at a place that a device knows.
#include "autograd/record.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.call.h"
#include "ops/gather/gather.h"
#include "ops/support/op.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

void check_put_row(const Tensor& rows, const Tensor& at, const Tensor& row) {
  check_rank_at_least({"put_row", "rows", rows}, 2);
  Shape one = rows.shape();
  one[1] = 1;
  check_dtype({"put_row", "row", row}, rows.dtype());
  check_shape({"put_row", "row", row}, one);
  check_same_device({"put_row", "row", row}, rows);
  check_dtype({"put_row", "at", at}, DType::i32);
  check_shape({"put_row", "at", at}, {1});
  if (!at.device().is_cpu()) check_same_device({"put_row", "at", at}, rows);
  check_condition(rows.size(1) > 0, "put_row", "rows", "one row or more", rows.describe());
  if (autograd::tracked({&rows, &row}))
    fail(ErrorCode::autograd, "put_row", "rows on a tape", "detach(), or NoGrad: it is in place",
         rows.describe());
}

}  // namespace

void put_row(Tensor& rows, const Tensor& at, const Tensor& row) {
  check_put_row(rows, at, row);
  const bool whole = rows.contiguous() && row.contiguous();
  if (whole && at.device() == rows.device() && has_routine<PutRowCall>(rows)) {
    launch(PutRowCall{at, row, rows});
    return;
  }
  // Where the device has no routine the host must know the place.
  const std::int64_t place = at.device().is_meta() ? 0 : at.to_vector<std::int32_t>()[0];
  check_condition(place >= 0 && place < rows.size(1), "put_row", "at",
                  "0 to " + std::to_string(rows.size(1) - 1), std::to_string(place));
  Tensor to = views::slice(rows, 1, place, place + 1);
  copy_into(to, row);
}

}  // namespace heddle::ops
