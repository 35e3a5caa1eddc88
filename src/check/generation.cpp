#include <algorithm>

#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "ops/concat/concat.h"
#include "ops/view/view.h"

namespace heddle::check {

namespace {

struct Rhythm {
  const char* path;
  std::vector<std::int64_t> blocks;  // of tokens, over and over
};

const Rhythm kRhythms[] = {{"generation, token by token", {1}},
                           {"generation, in blocks", {7, 1, 4, 2}}};

// Tokens that count, of each sequence.
std::vector<std::int64_t> lengths_of(const Tensor& tokens, const Tensor& lengths) {
  if (lengths.defined()) return lengths.to_vector<std::int64_t>();
  return std::vector<std::int64_t>(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
}

// The logits behind each block against those of the whole pass.
Errors generate(const model::Model& model, const Subject& subject, const Tensor& whole, DType dtype,
                const Rhythm& rhythm) {
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
  const auto state = model.begin(source, sequences, tokens, pass);
  Errors errors;
  std::vector<Tensor> got, want;
  std::int64_t done = 0;
  for (std::size_t turn = 0; done < tokens; ++turn) {
    const std::int64_t block = std::min(rhythm.blocks[turn % rhythm.blocks.size()], tokens - done);
    const Tensor next = model.next(*state, ops::slice(written, 1, done, done + block), pass);
    done += block;
    for (std::int64_t b = 0; b < sequences; ++b) {
      if (done > lengths[static_cast<std::size_t>(b)]) continue;  // padding
      const Tensor row = ops::slice(next, 0, b, b + 1);
      const Tensor expected = ops::slice(ops::slice(whole, 0, b, b + 1), 1, done - 1, done);
      const std::string where =
          "token " + std::to_string(done - 1) + " of sequence " + std::to_string(b);
      got.push_back(row);
      want.push_back(ops::reshape(expected, row.shape()));
      errors.largest.add(error_of(got.back(), want.back()), where);
    }
  }
  errors.mean.add(error_of(ops::concat(got, 0), ops::concat(want, 0), Measure::mean), {});
  return errors;
}

// What generation reads, as one batch: it knows one document, and its first block is the prompt.
model::Batch read_at_once(const Subject& subject, const Rhythm& rhythm) {
  model::Batch batch = subject.batch;
  batch.documents = {};
  if (subject.config.attention.prefix)
    batch.prefix_lengths = Tensor::full({batch.tokens.size(0)},
                                        static_cast<double>(rhythm.blocks.front()), DType::i64);
  return batch;
}

void check_generated(const Subject& subject, const std::vector<Setting>& settings, Report& report) {
  reference_setting().use();
  const NoGrad no_grad;
  std::vector<Tensor> whole;
  for (const Rhythm& rhythm : kRhythms)
    whole.push_back(subject.model(DType::f64)
                        ->logits(read_at_once(subject, rhythm), evaluation_pass(DType::f64)));
  for (const Setting& s : settings) {
    subject.progress("generation: " + std::string(to_string(s.dtype)) + " " +
                     std::string(cpu::to_string(s.isa)));
    s.use();
    const auto model = subject.model(s.dtype);
    for (std::size_t i = 0; i < whole.size(); ++i)
      add_case(report, kRhythms[i].path, s,
               generate(*model, subject, whole[i], s.dtype, kRhythms[i]),
               way_through(subject.config));
  }
}

}  // namespace

void check_generation(const Subject& subject, Report& report) {
  if (!subject.config.generates()) return;
  model::ModelConfig config = subject.config;
  std::vector<Setting> exact, rough;
  for (const Setting& s : all_settings(subject))
    if (comparable(config, s.dtype))
      (config.moe && s.dtype == DType::bf16 ? rough : exact).push_back(s);
  check_generated(Subject(config, subject), exact, report);
  if (rough.empty()) return;
  config.moe->active = config.moe->experts;
  check_generated(Subject(config, subject), rough, report);
}

}  // namespace heddle::check
