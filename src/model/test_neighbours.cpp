// The bits of a sequence do not depend on its neighbours in the batch, nor on how its tokens were
// cut into calls.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/settings.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

constexpr std::int64_t kMost = 300;  // tokens of a sequence: several blocks of keys

ModelConfig decoder(int variant) {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.width = 32;
  c.sizes.vocabulary = 50;
  c.sizes.context = kMost;
  c.attention.heads = 4;
  if (variant % 2 == 1) {
    c.attention.kv_heads = 2;
    c.attention.position = nn::RopePosition{};
    c.norm = nn::NormKind::rms;
    c.ffn = nn::FfnKind::swiglu;
  }
  return c;
}

using Tokens = std::vector<std::vector<std::int32_t>>;

Tensor columns_of(const Tokens& all, std::int64_t begin, std::int64_t end) {
  std::vector<std::int32_t> ids;
  for (const auto& tokens : all)
    ids.insert(ids.end(), tokens.begin() + begin, tokens.begin() + end);
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(all.size()), end - begin},
                                    std::span<const std::int32_t>(ids));
}

// Logits after the last token of each sequence, in calls that end at `cuts`.
Tensor read(const Model& model, const Tokens& all, const std::vector<std::int64_t>& cuts,
            const nn::Pass& pass) {
  const auto state = model.begin({}, static_cast<std::int64_t>(all.size()), cuts.back(), pass);
  Tensor logits;
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {
    logits = model.next(*state, columns_of(all, begin, end), pass);
    begin = end;
  }
  return logits;
}

class Mixes {
 public:
  explicit Mixes(unsigned seed) : random_(seed) {}

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  Tokens sequences(std::int64_t count, std::int64_t length, std::int64_t vocabulary) {
    Tokens all(static_cast<std::size_t>(count));
    for (auto& tokens : all)
      for (std::int64_t t = 0; t < length; ++t)
        tokens.push_back(static_cast<std::int32_t>(number(0, vocabulary - 1)));
    return all;
  }
  // A prompt in parts of more than eight tokens, and what follows it in parts of at most eight: as
  // attention computes few queries in another way than many.
  std::vector<std::int64_t> cuts(std::int64_t prompt, std::int64_t length) {
    std::vector<std::int64_t> ends;
    const auto add = [&](std::int64_t end, std::int64_t least, std::int64_t most) {
      for (std::int64_t at = ends.empty() ? 0 : ends.back(); at < end;) {
        at += number(least, most);
        if (end - at < least) at = end;
        ends.push_back(at);
      }
    };
    add(prompt, 9, 150);
    add(length, 1, number(1, 8));
    return ends;
  }

 private:
  std::mt19937 random_;
};

// Attention on tiles computes prompts in several ways, by their length.
bool cut_matters(cpu::Isa isa, DType precision) {
  return isa == cpu::Isa::amx && precision == DType::bf16;
}

void expect_same_alone(const Model& model, Mixes& mixes, const nn::Pass& pass, bool same_cuts) {
  const std::int64_t prompt = mixes.number(0, 3) == 0 ? 0 : mixes.number(9, kMost - 20);
  const std::int64_t length = prompt + mixes.number(1, 20), count = mixes.number(1, 5);
  const Tokens all = mixes.sequences(count, length, model.config().sizes.vocabulary);
  const std::vector<std::int64_t> cuts = mixes.cuts(prompt, length);
  const auto together = read(model, all, cuts, pass).to_vector<float>();
  const auto one = static_cast<std::size_t>(mixes.number(0, count - 1));
  const auto others = mixes.cuts(prompt, length);
  const auto alone = read(model, {all[one]}, same_cuts ? cuts : others, pass).to_vector<float>();
  EXPECT_EQ(
      std::memcmp(alone.data(), together.data() + one * alone.size(), alone.size() * sizeof(float)),
      0)
      << count << " sequences of " << length << " tokens, " << prompt << " of them a prompt";
}

// HEDDLE_MIXES: how many, for more of them by hand.
TEST(Neighbours, LeaveASequenceAlone) {
  const char* const asked = std::getenv("HEDDLE_MIXES");
  const int mixes = asked != nullptr ? std::atoi(asked) : 24;
  const cpu::SettingsScope settings;
  Mixes random(7);
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (int i = 0; i < mixes && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(std::string(cpu::to_string(isa)) + ", mix " + std::to_string(i));
      nn::Pass pass;
      pass.precision = i % 4 < 2 ? DType::f32 : DType::bf16;
      const auto model = build_random(decoder(i), DType::f32);
      expect_same_alone(*model, random, pass, cut_matters(isa, pass.precision));
    }
  }
}

}  // namespace
}  // namespace heddle::model
