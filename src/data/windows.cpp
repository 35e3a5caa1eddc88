#include "data/windows.h"

#include <utility>

#include "data/dataset.h"
#include "nn/require.h"

namespace heddle::data {

namespace {

WindowBatch window_batch(model::Batch batch) {
  return {std::move(batch.tokens), std::move(batch.targets)};
}

}  // namespace

Windows::Windows(const std::string& path, std::shared_ptr<const text::Tokenizer> tokenizer,
                 const WindowsConfig& config)
    : config_(config) {
  nn::require(tokenizer != nullptr, "windows", "tokenizer", "one, such as text::bytes()", "none");
  nn::require(config.batch > 0, "windows", "batch", "1 or more", static_cast<double>(config.batch));
  DataConfig data;
  data.training.text = {path};
  data.context = config.context;
  data.validation_share = config.validation_share;
  OpenOptions options;
  options.codec = Codec::for_language(std::move(tokenizer), config.context);
  data_ = open_dataset(data, model::Kind::decoder, model::Task::language, options);
}

Windows::~Windows() = default;
Windows::Windows(Windows&&) noexcept = default;

WindowBatch Windows::batch(std::int64_t step) const {
  nn::require(step > 0, "windows", "step", "1 or more", static_cast<double>(step));
  return window_batch(data_->training_batch(step - 1, config_.batch, config_.seed));
}

std::int64_t Windows::validation_batches() const {
  return data_->has_validation() ? data_->validation_batches(config_.batch) : 0;
}

WindowBatch Windows::validation_batch(std::int64_t index) const {
  const std::int64_t count = validation_batches();
  if (index < 0 || index >= count)
    fail(ErrorCode::out_of_range, "windows", "validation batch", "below " + std::to_string(count),
         std::to_string(index));
  return window_batch(data_->validation_batch(index, config_.batch));
}

const text::Tokenizer& Windows::tokenizer() const { return data_->codec().source(); }

}  // namespace heddle::data
