// The bits of a sequence do not depend on its neighbours in a call, on how its tokens were cut into
// calls, on when it came, nor on tokens that were tried and taken back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/settings.h"
#include "model/decoding.h"
#include "model/prompt.h"
#include "model/test_support.h"
#include "ops/attention/test_emulated.h"

namespace heddle::model {
namespace neighbours {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kMost = 300;  // tokens of a sequence: several blocks of keys

ModelConfig decoder() {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.width = 64;
  c.sizes.vocabulary = 50;
  c.sizes.context = kMost;
  c.attention.heads = 2;
  return c;
}

ModelConfig llama_like() {
  ModelConfig c = decoder();
  c.attention.kv_heads = 1;
  c.attention.position = nn::RopePosition{};
  c.norm = nn::NormKind::rms;
  c.ffn = nn::FfnKind::swiglu;
  return c;
}

// Models that differ in what could tell sequences apart.
std::vector<Variant> variants() {
  std::vector<Variant> all = {{"gpt", decoder()}, {"grouped heads", llama_like()}};
  const auto add = [&](const char* name, ModelConfig c, auto set) {
    set(c);
    all.push_back({name, std::move(c)});
  };
  add("windows", llama_like(), [](ModelConfig& c) { c.attention.look_back = 37; });
  add("alibi", decoder(), [](ModelConfig& c) { c.attention.position = nn::AlibiPosition{}; });
  add("t5", decoder(), [](ModelConfig& c) { c.attention.position = nn::T5Position{8, 60}; });
  add("sines", decoder(), [](ModelConfig& c) { c.attention.position = nn::SinusoidalPosition{}; });
  add("experts", llama_like(), [](ModelConfig& c) { c.moe = nn::MoeOptions{.experts = 4}; });
  add("cap and sinks", llama_like(),
      [](ModelConfig& c) { c.attention.softcap = 3, c.attention.sinks = true; });
  add("additive", decoder(), [](ModelConfig& c) { c.attention.score = nn::Score::additive; });
  add("relu", llama_like(), [](ModelConfig& c) {
    c.attention.normaliser = ops::Normaliser::relu;
    c.attention.look_back = 150;
  });
  add("prefix", llama_like(), [](ModelConfig& c) { c.attention.prefix = true; });
  add("long sums", llama_like(), [](ModelConfig& c) { c.ffn_width = 1500, c.layers = 1; });
  add("recurrent", small(Kind::rnn, Task::language), [](ModelConfig& c) { c.width = 32; });
  return all;
}

class Mixes {
 public:
  explicit Mixes(unsigned seed) : random_(seed) {}

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool one_in(std::int64_t n) { return number(1, n) == 1; }
  Ids sequence(std::int64_t length, std::int64_t vocabulary) {
    Ids ids;
    for (std::int64_t t = 0; t < length; ++t)
      ids.push_back(static_cast<std::int32_t>(number(0, vocabulary - 1)));
    return ids;
  }
  // How many tokens come at once: often one, as when a model writes.
  std::int64_t piece() {
    const std::int64_t kind = number(0, 3);
    return kind < 2 ? 1 : kind == 2 ? number(1, 12) : number(1, 200);
  }

 private:
  std::mt19937 random_;
};

using Bits = std::vector<float>;

Bits row_of(const Tensor& logits, std::int64_t row) {
  return ops::contiguous(ops::slice(logits, 0, row, row + 1)).to_vector<float>();
}

bool same_bits(const Bits& a, const Bits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A sequence on its way through a model.
struct Reading {
  Ids ids;
  std::int64_t prompt = 0;  // comes at once where the model sees it both ways
  std::int64_t begins = 0;  // with which call
  std::unique_ptr<DecodeState> state = {};
  Bits last = {};

  std::int64_t read() const { return state ? state->position() : 0; }
  bool complete() const { return read() == std::ssize(ids); }
};

// By itself, in one call after the other: the whole prompt, then token by token.
Bits alone(const Model& model, const Reading& r, const nn::Pass& pass) {
  const auto state = model.begin({}, 1, std::ssize(r.ids), pass);
  Tensor logits;
  for (std::int64_t at = 0; at < std::ssize(r.ids);) {
    const std::int64_t n = at == 0 ? r.prompt : 1;
    const Ids some(r.ids.begin() + at, r.ids.begin() + at + n);
    logits = model.next(*state, Tensor::from<std::int32_t>({1, n}, some), pass);
    at += n;
  }
  return row_of(logits, 0);
}

// The next tokens of a sequence. Now and then wrong ones are tried behind them.
struct Call {
  Reading* reading = nullptr;
  Ids tokens = {};
  std::size_t tried = 0;
};

Call next_call(const Model& model, Mixes& mixes, Reading& r, const nn::Pass& pass) {
  if (!r.state) r.state = model.begin({}, 1, kMost + 8, pass);
  const std::int64_t left = std::ssize(r.ids) - r.read();
  const bool whole = model.config().attention.prefix && r.read() == 0;
  const bool by_one = model.config().attention.prefix && r.read() > 0;
  const std::int64_t n =
      whole ? r.prompt : std::min(left, by_one ? std::int64_t{1} : mixes.piece());
  Call call{&r, Ids(r.ids.begin() + r.read(), r.ids.begin() + r.read() + n)};
  if (!model.config().recurrent() && !model.config().attention.prefix && mixes.one_in(3)) {
    const Ids wrong = mixes.sequence(mixes.number(1, 7), model.config().sizes.vocabulary);
    call.tokens.insert(call.tokens.end(), wrong.begin(), wrong.end());
    call.tried = wrong.size();
  }
  return call;
}

// One call for those of the sequences that have come and that mixes chooses.
void step(const Model& model, Mixes& mixes, std::vector<Reading>& all, std::int64_t number,
          const nn::Pass& pass) {
  std::vector<Call> calls;
  for (Reading& r : all)
    if (r.begins <= number && !r.complete() && !mixes.one_in(4))
      calls.push_back(next_call(model, mixes, r, pass));
  if (calls.empty()) return;
  std::vector<NextTokens> now;
  for (const Call& c : calls) now.push_back({c.reading->state.get(), c.tokens, 1 + c.tried});
  const Tensor logits = model.next_each(now, pass);
  std::int64_t row = 0;
  for (const Call& c : calls) {
    c.reading->last = row_of(logits, row);
    row += 1 + static_cast<std::int64_t>(c.tried);
    if (c.tried == 0) continue;
    const std::int64_t back = c.reading->state->position() - static_cast<std::int64_t>(c.tried);
    ASSERT_TRUE(c.reading->state->rewind(back));
  }
}

void expect_same_alone(const Model& model, Mixes& mixes, const nn::Pass& pass) {
  std::vector<Reading> all;
  const std::int64_t count = mixes.number(1, 6);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t prompt = mixes.one_in(3) ? 1 : mixes.number(1, kMost - 20);
    const std::int64_t length = prompt + mixes.number(0, 19);
    all.push_back(
        {mixes.sequence(length, model.config().sizes.vocabulary), prompt, mixes.number(0, 5)});
  }
  const auto unread = [](const Reading& r) { return !r.complete(); };
  for (std::int64_t number = 0; std::ranges::any_of(all, unread); ++number)
    step(model, mixes, all, number, pass);
  for (const Reading& r : all) {
    EXPECT_TRUE(same_bits(r.last, alone(model, r, pass)))
        << count << " sequences, this one of " << r.ids.size() << " tokens, " << r.prompt
        << " of them a prompt";
    // As it is read without a cache.
    const Tensor tokens = Tensor::from<std::int32_t>({1, std::ssize(r.ids)}, r.ids);
    const NoGrad no_grad;
    const Tensor whole = model.logits(prompted(model.config(), tokens, r.prompt), pass);
    const Tensor rows = ops::reshape(whole, {whole.size(1), whole.size(2)});
    EXPECT_TRUE(same_bits(r.last, row_of(rows, rows.size(0) - 1))) << "without a cache";
  }
}

// HEDDLE_MIXES: how many, for more of them by hand.
int mixes_asked(int usual) {
  const char* const asked = std::getenv("HEDDLE_MIXES");
  return asked != nullptr ? std::atoi(asked) : usual;
}

void expect_all_same(unsigned seed, const std::string& where) {
  const std::vector<Variant> all = variants();
  Mixes mixes(seed);
  const int count = mixes_asked(26);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const Variant& v = all[static_cast<std::size_t>(i) % all.size()];
    nn::Pass pass;
    pass.precision = static_cast<std::size_t>(i) / all.size() % 2 == 0 ? DType::f32 : DType::bf16;
    SCOPED_TRACE(where + ", " + v.name + ", mix " + std::to_string(i));
    expect_same_alone(*build_random(v.config, DType::f32), mixes, pass);
  }
}

TEST(Neighbours, LeaveASequenceAlone) {
  const cpu::SettingsScope settings;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    expect_all_same(7, std::string(cpu::to_string(isa)));
  }
}

// Attention on emulated tiles, on machines that multiply pairs of bf16.
TEST(Neighbours, LeaveASequenceAloneOnEmulatedTiles) {
  const cpu::SettingsScope settings;
  for (const cpu::Isa isa : cpu::available_isas()) {
    if (isa != cpu::Isa::avx512_bf16) continue;
    cpu::set_isa(isa);
    const ops::OnEmulatedTiles tiles;
    expect_all_same(8, "emulated tiles");
  }
}

}  // namespace
}  // namespace neighbours
}  // namespace heddle::model
