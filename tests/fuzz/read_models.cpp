#include "fuzz/read_models.h"

#include <functional>
#include <span>
#include <stdexcept>

#include "data/codec/codec.h"
#include "heddle/error.h"
#include "io/test_support.h"
#include "model/model.h"
#include "pretrained/load.h"
#include "text/template/chat_template.h"
#include "text/template/values/read_json.h"
#include "unit/source_tree.h"

namespace heddle::fuzz {
namespace {

constexpr std::string_view kContext = R"({
  "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true,
  "tools": [{"name": "f", "numbers": [1, -2.5, null, true]}],
  "messages": [{"role": "system", "content": " be \u00E9 short "},
               {"role": "user", "content": "<s>hello</s>"},
               {"role": "assistant", "content": "<think>hm</think> yes"},
               {"role": "user", "content": "go on"}] })";

std::string sound(const std::string& name) {
  return io::slurp(source_tree("tests/fuzz/models/" + name));
}

// Whether `body` ran to its end; Errors that files deserve are not.
bool taken(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::out_of_memory) throw std::logic_error(e.what());
    return false;
  }
}

Reading read_path(const std::string& path) {
  pretrained::Opened opened;
  if (!taken([&] { opened = pretrained::open(path); })) return Reading::refused;
  const bool used = taken([&] {
    model::Batch batch;
    batch.tokens = Tensor::from<std::int32_t>({1, 3}, {1, 0, 1});  // [B, T]
    pretrained::build(opened, {})->logits(batch, {});
  });
  return used ? Reading::used : Reading::opened;
}

Reading read_directory(const std::string& config, const std::string& weights) {
  const io::TempDir folder;
  folder.file("config.json", config);
  folder.file("model.safetensors", weights);
  return read_path(folder.path());
}

// How images become numbers. Used: an image went through.
Reading read_image_settings(const std::string& bytes) {
  const io::TempDir folder;
  folder.file("config.json", sound("dinov2.config.json"));
  folder.file("model.safetensors", sound("llama.safetensors"));
  folder.file("preprocessor_config.json", bytes);
  pretrained::Opened opened;
  if (!taken([&] { opened = pretrained::open(folder.path()); })) return Reading::refused;
  const bool used = taken([&] {
    const auto codec = pretrained::codec_of(opened);
    const model::DataSizes s = codec->sizes();
    constexpr std::int64_t kSmallImage = 1 << 24;  // it is not memory that is judged here
    if (s.channels * s.height * s.width > kSmallImage) return;
    const Tensor image = Tensor::zeros({s.channels, s.height, s.width}, DType::u8);
    (void)codec->batch_of_images(std::span(&image, 1));
  });
  return used ? Reading::used : Reading::refused;
}

Reading read_template(const std::string& bytes) {
  constexpr std::size_t kSmall = std::size_t{1} << 16;
  const text::chat::Limits limits{.steps = 20000,
                                  .work_bytes = std::uint64_t{1} << 20,
                                  .string_bytes = kSmall,
                                  .output_bytes = kSmall,
                                  .list_items = 4096};
  const text::chat::Value context = text::chat::read_json(kContext, "context", true);
  bool parsed = false;
  const bool rendered = taken([&] {
    const auto chat = text::chat::ChatTemplate::parse(bytes, "fuzz", limits);
    parsed = true;
    chat.render(context, [] { return std::tm{}; });
  });
  if (rendered) return Reading::used;
  return parsed ? Reading::opened : Reading::refused;
}

}  // namespace

Reading read_model(std::string_view name, const std::string& bytes) {
  if (name.ends_with(".jinja")) return read_template(bytes);
  if (name.ends_with(".gguf")) {
    const io::TempDir folder;
    return read_path(folder.file("model.gguf", bytes));
  }
  if (name.ends_with("preprocessor_config.json")) return read_image_settings(bytes);
  static const std::string config = sound("small_llama.config.json");
  static const std::string weights = sound("llama.safetensors");
  return name.ends_with(".safetensors") ? read_directory(config, bytes)
                                        : read_directory(bytes, weights);
}

}  // namespace heddle::fuzz
