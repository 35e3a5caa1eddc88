#include "generate/scores.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/error.h"
#include "heddle/tape.h"
#include "model/prompt.h"
#include "nn/finite.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::generate {

namespace {

Tensor one_row(std::span<const std::int32_t> tokens) {
  return Tensor::from<std::int32_t>({1, static_cast<std::int64_t>(tokens.size())}, tokens);
}

model::Batch batch_of(const model::ModelConfig& config, const ScoreRequest& request,
                      std::string_view where) {
  if (request.prompt && !config.attention.prefix)
    fail(ErrorCode::invalid_argument, where, "length of the prompt",
         "a model with attention.prefix: no other sees a prompt both ways",
         std::to_string(*request.prompt));
  if (config.kind == model::Kind::vit) {
    model::Batch batch;
    batch.images = request.images;
    return batch;
  }
  const auto all = static_cast<std::int64_t>(request.tokens.size());
  model::Batch batch =
      model::prompted(config, one_row(request.tokens), request.prompt.value_or(all));
  if (config.task == model::Task::translate) batch.target_tokens = one_row(request.target);
  return batch;
}

}  // namespace

void check_finite(const Tensor& values, std::string_view where, std::string_view what) {
  const Tensor flat = ops::contiguous(ops::cast(values.detach(), DType::f32)).to(Device::cpu);
  const float* first = flat.data<float>();
  if (std::all_of(first, first + flat.elements(), [](float v) { return std::isfinite(v); })) return;
  fail(ErrorCode::invalid_argument, where, what, "finite numbers", nn::first_bad_value(values));
}

Tensor scores(const model::Model& model, const ScoreRequest& request, std::string_view where) {
  nn::check_parameters(model.parameters(), where);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = request.precision;
  const Tensor made = model.logits(batch_of(model.config(), request, where), pass);
  const DType shown = request.precision == DType::f64 ? DType::f64 : DType::f32;
  const Tensor all = ops::contiguous(ops::cast(made, shown)).to(Device::cpu);
  Tensor rows = views::reshape(all, {-1, all.size(-1)});
  check_finite(rows, where, "scores of the model");
  return rows;
}

}  // namespace heddle::generate
