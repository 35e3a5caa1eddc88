// Every key of a recipe reaches its effect: changing it changes the numbers that are named, and no
// others.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/test_support.h"
#include "compare/comparison.h"
#include "data/test_support.h"
#include "io/toml/toml.h"
#include "mock/mock.h"
#include "model/parse/parse.h"
#include "ops/copy/copy.h"
#include "plan/plan.h"
#include "plan/plan_run.h"
#include "pretrained/test_tiny_llama.h"
#include "recipe/reference.h"
#include "recipe/test_toys.h"
#include "run/recipe_file.h"
#include "train/job.h"

namespace heddle::train {
using namespace toys;
namespace {

using io::TempDir;

// Observable facts of a run, each under a letter:
//   P parameters   W weights at the start   L scores of the first batch before training
//   K sizes and labels that the data decides   B batches of training   V of validation   X of test
//   T loss of the first step   G length of its gradient   R rates   U weights at the end
//   N the last step   O steps of the log   E steps of evaluations   Q targets of an evaluation
//   C checkpoints that were written, then those that stayed   M memory of a step
//   F files of the log   D device of the weights
struct Seen {
  std::string bytes;
  std::vector<double> numbers;
  double tolerance = 0;

  bool differs(const Seen& other) const {
    if (bytes != other.bytes || numbers.size() != other.numbers.size()) return true;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!(std::abs(numbers[i] - other.numbers[i]) <= tolerance)) return true;
    return false;
  }
};
using Sight = std::map<char, Seen>;

void add_weights(const model::Model& model, std::vector<double>& all) {
  for (const std::vector<float>& weights : weights_of(model))
    all.insert(all.end(), weights.begin(), weights.end());
}

std::string batches_of(const data::Dataset& data, data::Split split) {
  std::string all;
  if (!data.has(split)) return "none";
  for (std::int64_t i = 0; i < data.batches(split, 3); ++i)
    all += data::bytes_of(data.batch(split, i, 3));
  return all;
}

// Before the first step.
void look_at_start(const Job& job, Sight& seen) {
  const recipe::Recipe& r = job.recipe();
  const data::Dataset& data = job.data();
  seen['D'].bytes = to_string(job.model().device());
  seen['P'].numbers = {static_cast<double>(job.model().parameters().count())};
  add_weights(job.model(), seen['W'].numbers);
  const model::Batch first = data.training_batch(0, r.train.batch, r.train.seed);
  nn::Pass pass;
  pass.precision = r.train.precision;
  seen['L'] = {"", ops::cast(job.model().logits(first, pass), DType::f64).to_vector<double>(),
               1e-6};
  for (const std::int64_t step : {0, 1})
    seen['B'].bytes += data::bytes_of(data.training_batch(step, r.train.batch, r.train.seed));
  seen['V'].bytes = batches_of(data, data::Split::validation);
  seen['X'].bytes = batches_of(data, data::Split::test);
  const model::DataSizes& s = data.codec().sizes();
  for (const std::int64_t size :
       {s.vocabulary, s.target_vocabulary, s.classes, s.context, s.channels, s.height, s.width})
    seen['K'].numbers.push_back(static_cast<double>(size));
  for (const std::string& label : data.codec().labels()) seen['K'].bytes += label + "\n";
  const plan::Plan plan =
      plan::plan_training(r.model, r.train, plan::batch_shapes(data, r.train).largest);
  seen['M'].numbers = {static_cast<double>(plan.memory.peak)};
}

Sight look(const std::string& recipe, const std::vector<std::string>& set, const std::string& out) {
  (void)mock::device();  // there is a second device to choose
  Job job = Job::begin(run::load_recipe(recipe, set), out);
  Sight seen;
  look_at_start(job, seen);
  for (const char letter : {'T', 'G', 'R', 'E', 'O', 'C', 'Q'}) seen[letter] = {};
  seen['T'].tolerance = seen['G'].tolerance = 1e-6;
  seen['R'].tolerance = 1e-12;
  seen['U'].tolerance = 1e-5;
  Hooks hooks;
  hooks.on_step = [&](const StepReport& r) {
    if (r.step == 1) seen['T'].numbers = {r.loss};
    if (r.step == 1) seen['G'].numbers = {r.grad_norm};
    seen['R'].numbers.push_back(r.rate);
  };
  hooks.on_eval = [&](const EvalReport& r) {
    seen['E'].numbers.push_back(static_cast<double>(r.step));
    seen['Q'].numbers = {static_cast<double>(r.result.tokens)};
  };
  hooks.on_save = [&](const std::string& path) {
    seen['C'].bytes += std::filesystem::path(path).filename().string() + " ";
  };
  const Outcome outcome = job.run(hooks);
  seen['N'].numbers = {static_cast<double>(outcome.state.step)};
  add_weights(job.model(), seen['U'].numbers);
  std::set<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints"))
    kept.insert(entry.path().filename().string());
  for (const std::string& name : kept) seen['C'].bytes += "/ " + name;
  std::istringstream log(io::slurp(out + "/log.jsonl"));
  for (std::string line; std::getline(log, line);)
    if (line.find("eval_loss") == std::string::npos)
      seen['O'].numbers.push_back(std::stod(line.substr(line.find(':') + 1)));
  for (const char* name : {"jsonl", "csv", "tfevents"})
    for (const auto& entry : std::filesystem::directory_iterator(out))
      if (entry.path().filename().string().find(name) != std::string::npos)
        seen['F'].bytes += std::string(name) + " ";
  std::filesystem::remove_all(out);
  return seen;
}

// One key: in which recipe it is changed to what, and the letters that change with it, in the order
// of the list above. `after`: some of them in numbers, by hand.
struct Row {
  std::string key;
  std::string base;
  std::string set;  // "value", or "value;other.key=value" where one does not go without the other
  std::string changes;
  std::map<char, std::vector<double>> after = {};
};

constexpr std::string_view kLetters = "DPWLKBVXTGRUNOEQCMF";

std::string changed(const Sight& before, const Sight& after) {
  std::string letters;
  for (const char letter : kLetters)
    if (before.at(letter).differs(after.at(letter))) letters += letter;
  return letters;
}

class KeysTest : public testing::Test {
 protected:
  // Two versions of every file, and of each split another part: a, b and c.
  KeysTest() {
    for (const char version : {'1', '2'})
      for (const char split : {'a', 'b', 'c'}) write_files({split, version});
    pretrained::write_tiny_llama(dir_.file("llama"));
    for (const auto& [name, text] : bases()) dir_.file(name + ".toml", text);
    Job::begin(run::load_recipe(dir_.file("text.toml"), {"train.seed=77"}), dir_.file("earlier"))
        .run({});
  }

  void write_files(const std::string& name) {
    const auto mix = [&name](int i) {
      return (i * i * (name[0] - 'a' + 3) + 5 * i / 3 + 11 * name[1]) % 97;
    };
    std::string text, said, chat, source, target, pairs, tags, labelled, labels;
    const std::string letters = "abcdefg";
    for (int line = 0; line < 24; ++line) {
      const std::string word(1, letters[static_cast<std::size_t>(mix(line) % 7)]);
      const std::string other(1, letters[static_cast<std::size_t>(mix(3 * line + 1) % 7)]);
      text += word + other + word + (line % 4 == 0 ? "abcdefg\n" : "\n");
      said += R"({"say": ")" + word + other + "abcdefg\\n\"}\n";
      // Some of those for training are longer.
      const std::string more = name[0] == 'a' && line % 3 == 0 ? "abcdefgh" : "";
      chat += R"({"messages": [{"role": "user", "content": ")" + word + more +
              R"("}, {"role": "assistant", "content": ")" + other + "\"}]}\n";
      source += (line % 3 == 0 ? word + " " + other : word) + "\n";
      target += (line % 2 == 0 ? other + " " + word + " " + other : other) + "\n";
      pairs += word + " " + other + (line % 5 == 0 ? " Xing Yed" : "") + "\t" + other + "\n";
      // The third word is there but once: known by its shape, or not at all.
      const std::string rare(1, static_cast<char>((line % 2 == 0 ? 'a' : 'A') + line));
      tags +=
          word + "\tT" + std::to_string(line % 3) + "\n" + other + "\tT1\n" + rare + "ing\tT2\n\n";
      labelled += (mix(line) % 2 == 0 ? "good\t" : "bad\t") + word + " " + other + "\n";
      labels += static_cast<char>(line < 5 ? line : mix(line) % 5);
    }
    const std::map<std::string, std::string> texts = {
        {"text.", text},     {"said.", said},         {"chat.", chat},
        {"source.", source}, {"target.", target},     {"pairs.", pairs},
        {"tags.", tags},     {"labelled.", labelled}, {"labels.", data::idx({24}, labels)}};
    for (const auto& [kind, content] : texts) dir_.file(kind + name, content);
    std::string pixels;
    for (int i = 0; i < 24 * 24; ++i) pixels += static_cast<char>(mix(i) * 2);
    dir_.file("images." + name, data::idx({24, 4, 6}, pixels));
    for (const char* label : {"one", "two"})
      for (int i = 0; i < 3; ++i) {
        const std::string folder = dir_.file("folder." + name) + "/" + label;
        std::filesystem::create_directories(folder);
        Tensor image = Tensor::empty({1, 4, 6}, DType::u8);
        for (int p = 0; p < 24; ++p)
          image.mutable_data<std::uint8_t>()[p] =
              static_cast<std::uint8_t>(mix(p + 24 * i + (label[0] == 'o' ? 1 : 0)));
        io::write_png(folder + "/" + std::to_string(i) + ".png", image);
      }
  }

  static std::string splits(const std::vector<std::string>& keys) {
    std::string lines;
    for (const std::string& key : keys) {
      const bool text = key == "text";
      const std::string file = key == "image_folder" ? "folder" : key;
      lines += key + " = \"" + file + ".a1\"\n";
      lines += (text ? "validation" : "validation_" + key) + " = \"" + file + ".b1\"\n";
      lines += (text ? "test" : "test_" + key) + " = \"" + file + ".c1\"\n";
    }
    return lines;
  }

  static std::map<std::string, std::string> bases() {
    const std::string sizes = "layers = 1\nwidth = 8\n";
    const std::string heads = "attention.heads = 2\n";
    const std::string decoder = "[model]\nkind = \"decoder\"\n" + sizes + heads;
    const std::string rope = decoder + "attention.position = \"rope\"\nattention.rope_base = 100\n";
    const std::string linear = rope + "[model.attention.rope_scaling]\nfactor = 2\n";
    const std::string scaling = linear + "original_positions = 20\n";
    const std::string chars = "[data]\n" + splits({"text"}) + "tokenizer = \"char\"\ncontext = 6\n";
    const std::string words = "tokenizer = \"word\"\nmin_count = 1\n";
    const std::string train =
        "[train]\nsteps = 4\nbatch = 3\nlearning_rate = 0.01\nsave_every = 3\nlog_every = 2\n";
    const std::string eval = train + "eval_every = 2\n";
    const std::string sgd = eval + "optimizer = \"sgd\"\n";
    const std::string seq = "[model]\nkind = \"encoder-decoder\"\n" + sizes + heads;
    const std::string vit = "[model]\nkind = \"vit\"\npatch = 2\n" + sizes + heads;
    const auto encoder = [&](const char* task) {
      return "[model]\nkind = \"encoder\"\ntask = \"" + std::string(task) + "\"\n" + sizes + heads;
    };
    return {
        {"text", decoder + chars + eval},
        // The model of the files, written out: other tests of this room read recipes without them.
        {"chat",
         "[model]\nkind = \"decoder\"\nlayers = 2\nwidth = 24\nbias = false\nnorm = \"rms\"\n"
         "ffn = \"swiglu\"\nffn_width = 40\n[model.attention]\nheads = 4\nkv_heads = 2\n"
         "position = \"rope\"\nrope_base = 5000\n[data]\n" +
             splits({"chat"}) + eval + "from = \"llama\"\n"},
        {"sgd", decoder + chars + sgd},
        {"momentum", decoder + chars + sgd + "momentum = 0.5\n"},
        {"held-out",
         decoder + "[data]\ntext = \"text.a1\"\ntokenizer = \"char\"\ncontext = 6\n" + eval},
        {"normal", decoder + "init = \"normal\"\n" + chars + eval},
        {"moe", decoder + "ffn = \"moe\"\nmoe.experts = 3\n" + chars + eval},
        {"clamped", decoder + "ffn = \"swiglu-clamped\"\n" + chars + eval},
        {"two-layers", decoder + "head_transform = \"gelu\"\n" + chars + eval},
        {"waves", decoder + "attention.position = \"sinusoidal\"\n" + chars + eval},
        {"additive", decoder + "attention.score = \"additive\"\n" + chars + eval},
        {"rope", rope + chars + eval},
        {"linear", linear + "kind = \"linear\"\n" + chars + eval},
        {"llama3", scaling + "kind = \"llama3\"\n" + chars + eval},
        {"yarn", scaling + "kind = \"yarn\"\nbeta_fast = 1\nbeta_slow = 0.01\n" + chars + eval},
        {"t5", decoder + "attention.position = \"t5\"\nattention.t5_buckets = 4\n" + chars + eval},
        {"rnn", "[model]\nkind = \"rnn\"\n" + sizes + chars + eval},
        {"masked", encoder("masked") + chars + eval},
        {"pairs", seq + "[data]\n" + splits({"pairs"}) + words + train},
        {"files", seq + "[data]\n" + splits({"source", "target"}) + words + train},
        {"tags", encoder("tag") + "[data]\n" + splits({"tags"}) + "tokenizer = \"word\"\n" + train},
        {"labelled", encoder("classify") + "[data]\n" + splits({"labelled"}) + words + train},
        {"images", vit + "[data]\n" + splits({"images", "labels"}) + train},
        {"folders", vit + "[data]\n" + splits({"image_folder"}) + train},
        {"still", decoder + chars +
                      "[train]\nsteps = 4\nbatch = 3\nlearning_rate = 1e-30\nweight_decay = 0\n"
                      "save_every = 3\nlog_every = 2\neval_every = 1\n"},
    };
  }

  Sight look_at(const std::string& base, const std::vector<std::string>& set) {
    return look(dir_.file(base + ".toml"), set, dir_.file("run"));
  }
  const Sight& before(const std::string& base) {
    if (!seen_.contains(base)) seen_[base] = look_at(base, {});
    return seen_.at(base);
  }

  TempDir dir_;
  std::map<std::string, Sight> seen_;
};

std::vector<Row> rows_of_models() {
  const std::string all = "PWLTGUM", scores = "LTGU";
  return {
      {"model.kind", "rnn", "decoder", "PWLTGUM"},
      {"model.layers", "text", "2", all, {{'P', {64 + 2 * 872 + 16 + 64}}}},
      {"model.decoder_layers", "pairs", "2", all},
      {"model.width", "text", "12", all},
      // 8 biases of q, k, v, out and the second product, 32 of the first, 3 norms of 8.
      {"model.bias", "text", "false", "PWGUM", {{'P', {1016 - 5 * 8 - 32 - 3 * 8}}}},
      {"model.tied", "text", "true", all, {{'P', {1016 - 64}}}},
      {"model.shared_embedding", "pairs", "true", all},
      {"model.dropout", "text", "0.5", "TGU"},
      {"model.embedding_dropout", "text", "0.5", "TGU"},
      {"model.scale_embedding", "text", "true", "LTGUM"},
      {"model.embedding_scale", "text", "3", "LTGUM"},
      {"model.qkv_bias", "text", "false", "PWGUM", {{'P', {1016 - 3 * 8}}}},
      // A key's bias is the same for all keys, and so without influence on a softmax.
      {"model.key_bias", "text", "false", "PWUM", {{'P', {1016 - 8}}}},
      {"model.out_bias", "text", "false", "PWGUM", {{'P', {1016 - 8}}}},
      {"model.ffn_bias", "text", "false", "PWGUM", {{'P', {1016 - 32 - 8}}}},
      {"model.norm_bias", "text", "false", "PWGUM", {{'P', {1016 - 3 * 8}}}},
      {"model.head_bias", "text", "true", "PWGUM", {{'P', {1016 + 8}}}},
      {"model.residual_scale", "text", "0.5", scores},
      {"model.layer_scale", "text", "0.5", all, {{'P', {1016 + 2 * 8}}}},
      {"model.logit_scale", "text", "0.5", scores},
      {"model.logit_softcap", "text", "0.5", scores},
      {"model.last_norm", "text", "false", all, {{'P', {1016 - 16}}}},
      {"model.first_norm", "text", "false", all, {{'P', {1016 - 16}}}},
      {"model.head_transform", "text", "tanh", all, {{'P', {1016 + 8 * 8 + 8}}}},
      {"model.head_transform_bias", "two-layers", "false", "PWGUM", {{'P', {1016 + 8 * 8}}}},
      {"model.head_norm", "two-layers", "true", all, {{'P', {1016 + 8 * 8 + 8 + 16}}}},
      {"model.embedding_norm", "text", "true", all, {{'P', {1016 + 16}}}},
      {"model.qk_norm", "text", "full", all, {{'P', {1016 + 16}}}},
      {"model.parallel", "text", "one-norm", all, {{'P', {1016 - 16}}}},
      {"model.init", "text", "xavier", "WLTGU"},
      {"model.init_deviation", "normal", "0.5", "WLTGU"},
      {"model.init_branches", "text", "false", "WLTGU"},
      {"model.residual", "rnn", "true", all},
      {"model.norm", "text", "rms", all, {{'P', {1016 - 3 * 8}}}},
      {"model.norm_place", "text", "post", all, {{'P', {1016 - 16}}}},
      {"model.norm_place", "text", "sandwich", all, {{'P', {1016 + 2 * 16}}}},
      {"model.norm_place", "text", "branch", "LTGUM"},
      {"model.norm_epsilon", "text", "0.5", scores},
      {"model.ffn", "text", "relu", scores},
      {"model.ffn", "text", "relu2", scores},
      {"model.ffn_clamp", "clamped", "0.1", scores},
      {"model.ffn_width", "text", "16", all, {{'P', {1016 - 16 * (8 + 1 + 8)}}}},
      {"model.pooling", "labelled", "mean", all},
      {"model.pooling", "labelled", "first-token", all},
      {"model.pooling", "images", "class-mean", all},
      {"model.patch", "images", "1", all},
      {"model.extra_tokens", "images", "2", all},
      {"model.moe", "text", "{ experts = 3 };model.ffn=moe", all},
      {"model.moe.experts", "moe", "4", all},
      {"model.moe.active", "moe", "1", scores},
      {"model.moe.capacity", "moe", "0.4", "TGU"},
      {"model.moe.shared", "moe", "1", all},
      {"model.moe.balance", "moe", "0.9", "GU"},  // no part of the loss that is told
      {"model.moe.expert", "moe", "relu", scores},
      {"model.moe.router", "moe", "sigmoid", scores},
      {"model.moe.renormalise", "moe", "false", scores},
      {"model.moe.routed_scale", "moe", "2", scores},
      {"model.moe.router_bias", "moe", "true", "PWGUM"},
      {"model.moe.router_correction", "moe", "true", "PWUM"},
      {"model.moe.shared_gate", "moe", "true;model.moe.shared=1", all},
      {"model.moe.dense_layers", "moe", "1", all},
      {"model.moe.dense_width", "moe", "6;model.moe.dense_layers=1", all},
      {"model.attention", "rnn", "{ heads = 4 };model.kind=decoder", all},
      {"model.attention.score", "text", "multiplicative", all, {{'P', {1016 + 2 * 4 * 4}}}},
      {"model.attention.normaliser", "text", "relu", scores},
      {"model.attention.heads", "text", "4", "LTGUM"},
      {"model.attention.kv_heads", "text", "1", all, {{'P', {1016 - 2 * (8 * 4 + 4)}}}},
      {"model.attention.head_width", "text", "6", all, {{'P', {1016 + 4 * 4 * 8 + 3 * 4}}}},
      {"model.attention.score_width", "additive", "6", all},
      {"model.attention.scale", "text", "3.0", scores},
      {"model.attention.softcap", "text", "0.1", scores},
      {"model.attention.dropout", "text", "0.5", "TGU"},
      {"model.attention.sinks", "text", "true", all, {{'P', {1016 + 2}}}},
      {"model.attention.look_back", "text", "1", scores},
      {"model.attention.look_ahead", "masked", "0", scores},
      {"model.attention.prefix", "text", "true", "LBVXTGUQM"},
      {"model.attention.position", "text", "learned", all, {{'P', {1016 + 6 * 8}}}},
      {"model.attention.sinusoidal_halves", "waves", "true", scores},
      {"model.attention.pattern", "rope", "[\"a\"];model.attention.a={ look_back = 1 }", scores},
      {"model.attention.rope_base", "rope", "1000", scores},
      {"model.attention.rope_width", "rope", "2", scores},
      {"model.attention.rope_pairing", "rope", "interleaved", scores},
      {"model.attention.rope_scaling", "rope", "{ kind = \"linear\", factor = 3 }", scores},
      {"model.attention.rope_scaling.kind", "llama3", "yarn", scores},
      {"model.attention.rope_scaling.factor", "linear", "4", scores},
      {"model.attention.rope_scaling.original_positions", "llama3", "40", scores},
      {"model.attention.rope_scaling.low_frequency", "llama3", "2", scores},
      {"model.attention.rope_scaling.high_frequency", "llama3", "8", scores},
      {"model.attention.rope_scaling.beta_fast", "yarn", "0.1", scores},
      {"model.attention.rope_scaling.beta_slow", "yarn", "0.1", scores},
      {"model.attention.rope_scaling.attention_factor", "yarn", "2", scores},
      {"model.attention.rope_scaling.mscale", "yarn",
       "0.5;model.attention.rope_scaling.mscale_all_dim=2", scores},
      {"model.attention.rope_scaling.mscale_all_dim", "yarn",
       "2;model.attention.rope_scaling.mscale=0.5", scores},
      {"model.attention.rope_scaling.truncate", "yarn", "false", scores},
      {"model.attention.t5_buckets", "t5", "6", "PWLTGU", {{'P', {1016 + 6 * 2}}}},
      {"model.attention.rope_scaling.factors", "rope",
       "[1, 3];model.attention.rope_scaling.kind=factors", scores},
      {"model.attention.t5_max_distance", "t5", "4", scores},
      {"model.attention.t5_shared", "t5", "true;model.layers=2", "PWLTGUM"},
  };
}

std::vector<Row> rows_of_data() {
  const std::string other = "LBTGU";  // other training data
  // Words have the numbers that the training data gives them, in all splits; pixels are normalised
  // by its means.
  const std::string learned = "LBVXTGU";
  return {
      {"data.text", "text", "text.a2", other},
      {"data.validation", "text", "text.b2", "V"},
      {"data.test", "text", "text.c2", "X"},
      {"data.chat", "chat", "chat.a2", other},
      {"data.validation_chat", "chat", "chat.b2", "V"},
      {"data.test_chat", "chat", "chat.c2", "X"},
      {"data.skip_long", "chat", "true;data.max_length=26", other + "M"},
      {"data.source", "files", "source.a2", learned},
      {"data.target", "files", "target.a2", learned},
      {"data.validation_source", "files", "source.b2", "V"},
      {"data.validation_target", "files", "target.b2", "V"},
      {"data.test_source", "files", "source.c2", "X"},
      {"data.test_target", "files", "target.c2", "X"},
      {"data.pairs", "pairs", "pairs.a2", learned},
      {"data.validation_pairs", "pairs", "pairs.b2", "V"},
      {"data.test_pairs", "pairs", "pairs.c2", "X"},
      {"data.tags", "tags", "tags.a2", learned},
      {"data.validation_tags", "tags", "tags.b2", "V"},
      {"data.test_tags", "tags", "tags.c2", "X"},
      {"data.labelled", "labelled", "labelled.a2", learned},
      {"data.validation_labelled", "labelled", "labelled.b2", "V"},
      {"data.test_labelled", "labelled", "labelled.c2", "X"},
      {"data.images", "images", "images.a2", learned},
      {"data.labels", "images", "labels.a2", "BTGU"},
      {"data.validation_images", "images", "images.b2", "V"},
      {"data.validation_labels", "images", "labels.b2", "V"},
      {"data.test_images", "images", "images.c2", "X"},
      {"data.test_labels", "images", "labels.c2", "X"},
      {"data.image_folder", "folders", "folder.a2", learned},
      {"data.validation_image_folder", "folders", "folder.b2", "V"},
      {"data.test_image_folder", "folders", "folder.c2", "X"},
      {"data.validation_share", "held-out", "0.5", "LBVTGUQ"},
      {"data.tokenizer", "text", "byte", "PWLKBVXTGUM", {{'K', {256, 0, 0, 6, 0, 0, 0}}}},
      {"data.target_tokenizer", "pairs", "char", "PWLKBVXTGUM"},
      {"data.source_end", "pairs", "false", "LBVXTGUM"},
      {"data.min_count", "pairs", "6", "PWLKBVXTGUM"},
      {"data.word_shapes", "tags", "false", "PWLKBVXTGUM"},
      {"data.context", "text", "5", "LKBVXTGUM", {{'K', {8, 0, 0, 5, 0, 0, 0}}}},
      {"data.documents", "text", "line", "LBVXTGUQM"},
      {"data.mixture", "text", "[1, 2];data.text=[\"text.a1\", \"text.a2\"]", other},
      {"data.field", "held-out", "say;data.text=said.a2", "LBVTGUQ"},
      {"data.token_folder", "text", "tokens", ""},
      {"data.max_length", "labelled", "1", "LKBVXTGUM"},
      {"data.mask_share", "masked", "0.5", "LBVXTGUQ"},
      {"data.flip", "images", "true", other},
      {"data.shift", "images", "1", other},
      {"data.label_names", "images", "[\"a\", \"b\", \"c\", \"d\", \"e\"]", "K"},
  };
}

// Rates of four steps at 0.01, down to a tenth: a half wave, or a line.
std::vector<Row> rows_of_training() {
  const std::vector<double> doubled = {0.017363961, 0.011, 0.004636039, 0.002};
  return {
      {"train.steps", "text", "5", "RUNOEC", {{'N', {5}}, {'O', {2, 4, 5}}, {'E', {2, 4, 5}}}},
      {"train.batch", "text", "2", "LBTGUM"},
      {"train.accumulate", "sgd", "3", "M"},
      {"train.parts", "sgd", "3", "M"},
      {"train.shard", "sgd", "gradients;train.parts=3", "M"},
      {"train.timeout", "text", "7", ""},  // others are waited for: tests/e2e/ranks.py
      {"train.precision", "text", "bf16", "LTGUM"},
      {"train.device", "text", "plugin:0", "DWUM"},
      {"train.recompute", "text", "true", "M"},
      {"train.optimizer", "text", "sgd", "UM"},
      {"train.learning_rate", "text", "0.02", "RU", {{'R', doubled}}},
      {"train.weight_decay", "text", "0.5", "U"},
      {"train.momentum", "sgd", "0.5", "UM"},
      {"train.nesterov", "momentum", "true", "U"},
      {"train.beta1", "text", "0.5", "U"},
      {"train.beta2", "text", "0.5", "U"},
      {"train.epsilon", "text", "0.1", "U"},
      {"train.clip", "sgd", "0.01", "U"},
      {"train.label_smoothing", "text", "0.3", "TGU"},
      {"train.schedule", "text", "linear", "RU", {{'R', {0.00775, 0.0055, 0.00325, 0.001}}}},
      {"train.warmup", "text", "2", "RU", {{'R', {0.005, 0.01, 0.0055, 0.001}}}},
      {"train.final_share",
       "text",
       "0.5",
       "RU",
       {{'R', {0.0092677670, 0.0075, 0.0057322330, 0.005}}}},
      {"train.eval_every", "text", "1", "E", {{'E', {1, 2, 3, 4}}}},
      {"train.eval_batches", "text", "1", "Q", {{'Q', {3 * 6}}}},
      {"train.patience", "still", "1", "RNOEC", {{'N', {2}}, {'E', {1, 2}}, {'O', {2}}}},
      {"train.save_every", "text", "1", "C"},
      {"train.keep", "text", "1", "C"},
      {"train.log_every", "text", "3", "O", {{'O', {3, 4}}}},
      {"train.log", "text", "[\"jsonl\", \"csv\"]", "F"},
      {"train.log", "text", "[\"tensorboard\", \"jsonl\"]", "F"},
      {"train.seed", "text", "2", "WLBTGU"},
      {"train.from", "text", "earlier", "WLTGU"},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> all = rows_of_models();
  for (auto more : {rows_of_data(), rows_of_training()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(KeysTest, EveryKeyChangesWhatItNames) {
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.key + " of " + row.base + " = " + row.set);
    const std::size_t more = row.set.find(';');
    std::string value = row.set.substr(0, more);
    if (row.key == "train.from" || row.key == "data.token_folder") value = dir_.file(value);
    std::vector<std::string> set = {row.key + "=" + value};
    if (more != std::string::npos) set.push_back(row.set.substr(more + 1));
    try {
      const Sight after = look_at(row.base, set);
      EXPECT_EQ(changed(before(row.base), after), row.changes);
      for (const auto& [letter, numbers] : row.after) {
        const std::vector<double>& got = after.at(letter).numbers;
        ASSERT_EQ(got.size(), numbers.size()) << letter;
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], numbers[i], 1e-9) << letter << " " << i;
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

// In the table a key of a kind of model stands once; here all keys that any of them asks for.
TEST_F(KeysTest, EveryKeyHasARow) {
  std::set<std::string> known;
  for (const auto& [name, text] : bases()) {
    const io::TomlDocument document = io::TomlDocument::parse(text, name);
    model::parse_model(document.root().table("model"));
    data::parse_data(document.root().table("data"));
    recipe::parse_train(document.root().table("train"));
    for (const std::string& key : document.known()) known.insert(key);
  }
  std::set<std::string> rows = {"model", "data", "train", "model.task"};
  for (const Row& row : all_rows()) rows.insert(row.key);
  EXPECT_EQ(known, rows);
  for (const std::string& key : known) EXPECT_NO_THROW(recipe::keys_named(key)) << key;
  // Those of [compare] are below: an unknown one lists them.
  expect_says([&] { run::load_recipe(dir_.file("text.toml"), {"compare.other=1"}); },
              {"known here: budget, seeds, vary)"});
}

// The loss that is learned is smoothed, what is evaluated is not: both by their formulas.
TEST_F(KeysTest, SmoothedLossByHand) {
  const Job job = Job::begin(run::load_recipe(dir_.file("text.toml")), dir_.file("by-hand"));
  const model::Batch batch = job.data().training_batch(0, 3, 1);
  const auto logits = job.model().logits(batch, {}).to_vector<float>();
  const auto targets = batch.targets.to_vector<std::int32_t>();
  const std::size_t labels = logits.size() / targets.size();
  double plain = 0, smooth = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    double exps = 0, sum = 0;
    for (std::size_t v = 0; v < labels; ++v) {
      exps += std::exp(double{logits[t * labels + v]});
      sum += logits[t * labels + v];
    }
    const double target = logits[t * labels + std::size_t(targets[t])];
    plain += std::log(exps) - target;
    smooth += std::log(exps) - 0.7 * target - 0.3 * sum / static_cast<double>(labels);
  }
  const auto count = static_cast<double>(targets.size());
  const Sight with = look_at("text", {"train.label_smoothing=0.3"});
  EXPECT_NEAR(before("text").at('T').numbers[0], plain / count, 1e-5);
  EXPECT_NEAR(with.at('T').numbers[0], smooth / count, 1e-5);
  EXPECT_GT(std::abs(smooth - plain) / count, 1e-3);
}

// model.task decides which data a model reads, so that no one recipe has two of them.
TEST_F(KeysTest, TasksHaveLabelsOfTheirOwn) {
  EXPECT_EQ(before("masked").at('K').numbers[2], 0);
  EXPECT_EQ(before("tags").at('K').numbers[2], 3);      // T0, T1, T2
  EXPECT_EQ(before("labelled").at('K').numbers[2], 2);  // good, bad
}

TEST_F(KeysTest, KeysOfComparisons) {
  const auto opened = [&](const std::string& table) {
    const std::string recipe =
        dir_.file("compare.toml", bases().at("text") + "[compare]\n" + table);
    std::filesystem::remove_all(dir_.file("compared"));
    return compare::Comparison({.recipe = recipe, .out = dir_.file("compared")});
  };
  const std::string two = "vary = [\"model.norm=layer,rms\"]\n";
  {
    const compare::Comparison plain = opened(two);
    ASSERT_EQ(plain.variants().size(), 2u);
    EXPECT_EQ(plain.variants()[0].recipe.model.norm, nn::NormKind::layer);
    EXPECT_EQ(plain.variants()[1].recipe.model.norm, nn::NormKind::rms);
    EXPECT_EQ(plain.steps(0), 4);  // train.steps
  }
  EXPECT_EQ(
      opened("vary = [\"model.norm=layer,rms\", \"model.width=8,12,16\"]\n").variants().size(), 6u);
  EXPECT_EQ(opened(two + "seeds = 5\n").runs().size(), 10u);
  EXPECT_EQ(opened(two + "budget = \"steps=7\"\n").steps(1), 7);
  EXPECT_EQ(opened(two + "budget = \"tokens=90\"\n").steps(1), 5);  // of 3 · 6
}

}  // namespace
}  // namespace heddle::train
