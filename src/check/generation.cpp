#include <algorithm>

#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "language/language.h"
#include "model/prompt.h"
#include "ops/concat/concat.h"
#include "ops/view/view.h"

namespace heddle::check {

namespace {

struct Rhythm {
  const char* path;
  std::vector<std::int64_t> blocks;  // of tokens, over and over
};

const Rhythm kRhythms[] = {{mark("generation, token by token"), {1}},
                           {mark("generation, in blocks"), {7, 1, 4, 2}}};

// Tokens that count, of each sequence.
std::vector<std::int64_t> lengths_of(const Tensor& tokens, const Tensor& lengths) {
  if (lengths.defined()) return lengths.to_vector<std::int64_t>();
  return std::vector<std::int64_t>(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
}

// The logits after each block against those of the whole pass.
Difference generate(const model::Model& model, const Subject& subject, const Tensor& whole,
                    DType dtype, const Rhythm& rhythm) {
  const NoGrad no_grad;
  const model::Batch& batch = subject.batch;
  const bool pairs = batch.target_tokens.defined();
  const Tensor written = pairs ? batch.target_tokens : batch.tokens;  // [B, U]
  const std::vector<std::int64_t> lengths =
      lengths_of(written, pairs ? batch.target_lengths : batch.lengths);
  const std::int64_t sequences = written.size(0), tokens = written.size(1);
  const nn::Pass pass = evaluation_pass(dtype);
  model::Batch source;
  if (pairs) source.tokens = batch.tokens, source.lengths = batch.lengths;
  source.prefix_lengths =
      model::prompt_lengths(subject.config, sequences, std::min(rhythm.blocks.front(), tokens));
  const auto state = model.begin(source, sequences, tokens, pass);
  std::vector<Tensor> got, want;
  WorstError worst;  // for its name
  const double size = root_mean_square(whole);
  std::int64_t done = 0;
  for (std::size_t turn = 0; done < tokens; ++turn) {
    const std::int64_t block = std::min(rhythm.blocks[turn % rhythm.blocks.size()], tokens - done);
    const Tensor next = model.next(*state, ops::slice(written, 1, done, done + block), pass);
    done += block;
    for (std::int64_t b = 0; b < sequences; ++b) {
      if (done > lengths[static_cast<std::size_t>(b)]) continue;  // padding
      const Tensor row = ops::slice(next, 0, b, b + 1);
      const Tensor expected = ops::slice(ops::slice(whole, 0, b, b + 1), 1, done - 1, done);
      const std::string where = tr("token {} of sequence {}", done - 1, b);
      got.push_back(row);
      want.push_back(ops::reshape(expected, row.shape()));
      worst.add(error_of(got.back(), want.back(), Measure::largest, size), where);
    }
  }
  Difference all =
      differences_of({{"", ops::concat(got, 0)}}, {{"", ops::concat(want, 0), "logits"}}).front();
  all.name = worst.name;
  return all;
}

// The input of generation, as one batch: it knows one document, and its first block is the prompt,
// or as much of it as there is.
model::Batch read_at_once(const Subject& subject, const Rhythm& rhythm) {
  model::Batch batch = subject.batch;
  batch.documents = {};
  batch.prefix_lengths = model::prompt_lengths(
      subject.config, batch.tokens.size(0), std::min(rhythm.blocks.front(), batch.tokens.size(1)));
  return batch;
}

void check_generated(const Subject& subject, const std::vector<Setting>& settings, Report& report) {
  if (settings.empty()) return;
  std::vector<Tensor> whole;
  std::vector<Spreads> spreads;
  for (const Rhythm& rhythm : kRhythms) {
    const model::Batch batch = read_at_once(subject, rhythm);
    const auto logits = [&](const Jitter& jitter) {
      return logits_of(*subject.model(jitter), batch, DType::f64, true);
    };
    spreads.push_back(measure_spreads(
        [&](const Jitter& jitter) { return std::vector<Named>{{"", logits(jitter), "logits"}}; }));
    reference_setting().use();
    whole.push_back(logits({}));
  }
  for (const Setting& s : settings) {
    subject.progress(tr("generation: {} {}", to_string(s.dtype), cpu::to_string(s.isa)));
    s.use();
    const auto model = subject.model(s.dtype);
    for (std::size_t i = 0; i < whole.size(); ++i)
      add_case(report, kRhythms[i].path, s,
               std::vector{generate(*model, subject, whole[i], s.dtype, kRhythms[i])},
               {way_through(subject.config), &spreads[i]});
  }
}

}  // namespace

void check_generation(const Subject& subject, Report& report) {
  if (!subject.config.generates()) return;
  std::vector<Setting> exact, rough;
  for (const Setting& s : all_settings(subject))
    if (comparable(subject.config, s.dtype))
      (subject.routes_alike(s.dtype) ? exact : rough).push_back(s);
  check_generated(subject, exact, report);
  if (!rough.empty()) check_generated(subject.at_all_experts(), rough, report);
}

}  // namespace heddle::check
