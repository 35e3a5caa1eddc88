// Every refusal of a validate() that a recipe can reach names file and line of the keys it is
// about.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/test_support.h"
#include "data/test_support.h"
#include "recipe/recipe.h"
#include "train/job.h"

namespace heddle::recipe {
namespace {

using io::TempDir;

// A recipe by its tables, the line that is refused, and the lines of the other keys it is about, in
// the order in which they are named.
struct Refusal {
  std::string model, data, train;
  std::string at;
  std::vector<std::string> with;
  std::string says;
};

const std::string kDecoder = "kind = \"decoder\"\nlayers = 1\nwidth = 8\n";
const std::string kTagger = "kind = \"encoder\"\ntask = \"tag\"\nlayers = 1\nwidth = 8\n";
const std::string kVit = "kind = \"vit\"\nlayers = 1\nwidth = 8\npatch = 2\n";
const std::string kTranslator = "kind = \"encoder-decoder\"\nlayers = 1\nwidth = 8\n";
const std::string kText = "text = \"t\"\ntokenizer = \"byte\"\ncontext = 4\n";
const std::string kTags = "tags = \"t\"\ntokenizer = \"word\"\n";
const std::string kPairs = "pairs = \"t\"\ntokenizer = \"word\"\n";
const std::string kImages = "images = \"i\"\nlabels = \"l\"\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

std::string wide(const std::string& model, const char* width) {
  return replaced(model, "width = 8", "width = " + std::string(width));
}

std::vector<Refusal> refusals_of_models() {
  const std::string t5 = "attention.position = \"t5\"\n";
  const std::string rope = "attention.position = \"rope\"\n";
  const std::string scaling = rope + "attention.rope_scaling.factor = 2.0\n";
  const std::string original = scaling + "attention.rope_scaling.original_positions = 8\n";
  const std::string kind = "kind = \"decoder\"";
  return {
      {kDecoder + "attention.heads = 3\n",
       kText,
       "",
       "attention.heads = 3",
       {"width = 8"},
       "width"},
      {kDecoder + "attention.heads = 4\nattention.kv_heads = 3\n",
       kText,
       "",
       "attention.kv_heads = 3",
       {"attention.heads = 4"},
       "divisor"},
      {kDecoder + "attention.score_width = 3\nattention.score = \"concat\"\n",
       kText,
       "",
       "attention.score_width = 3",
       {"attention.score = \"concat\""},
       "additive"},
      {kDecoder + "attention.score_width = 3\n",
       kText,
       "",
       "attention.score_width = 3",
       {},
       "additive"},
      {kDecoder + "attention.sinks = true\nattention.normaliser = \"relu\"\n",
       kText,
       "",
       "attention.sinks = true",
       {"attention.normaliser = \"relu\""},
       "softmax"},
      {wide(kDecoder, "7") + "attention.position = \"sinusoidal\"\n",
       kText,
       "",
       "width = 7",
       {"attention.position = \"sinusoidal\""},
       "even"},
      {kTagger + t5 + "attention.t5_buckets = 5\n",
       kTags,
       "",
       "attention.t5_buckets = 5",
       {"kind = \"encoder\""},
       "even"},
      {kDecoder + t5 + "attention.t5_buckets = 1\n",
       kText,
       "",
       "attention.t5_buckets = 1",
       {},
       "2 or more"},
      {kDecoder + t5 + "attention.t5_max_distance = 4\nattention.t5_buckets = 8\n",
       kText,
       "",
       "attention.t5_max_distance = 4",
       {"attention.t5_buckets = 8"},
       "more than 4"},
      {kDecoder + rope + "attention.score = \"additive\"\n",
       kText,
       "",
       "attention.position = \"rope\"",
       {"attention.score = \"additive\""},
       "dot product"},
      {kDecoder + rope + "attention.rope_base = 1\n",
       kText,
       "",
       "attention.rope_base = 1",
       {},
       "above 1"},
      {kDecoder + rope + "attention.rope_width = 6\nattention.heads = 2\n",
       kText,
       "",
       "attention.rope_width = 6",
       {"attention.heads = 2", "width = 8"},
       "head_width = 4"},
      {kDecoder + scaling + "attention.rope_width = 2\nattention.rope_scaling.kind = \"ntk\"\n",
       kText,
       "",
       "attention.rope_width = 2",
       {"attention.rope_scaling.kind = \"ntk\"", "width = 8"},
       "NTK"},
      {kDecoder + original + "attention.rope_scaling.kind = \"yarn\"\n" +
           "attention.rope_scaling.beta_fast = 2.0\nattention.rope_scaling.beta_slow = 3.0\n",
       kText,
       "",
       "attention.rope_scaling.beta_fast = 2.0",
       {"attention.rope_scaling.beta_slow = 3.0"},
       "beta_slow"},
      {kDecoder + original + "attention.rope_scaling.kind = \"llama3\"\n" +
           "attention.rope_scaling.high_frequency = 1.0\n"
           "attention.rope_scaling.low_frequency = 2.0\n",
       kText,
       "",
       "attention.rope_scaling.high_frequency = 1.0",
       {"attention.rope_scaling.low_frequency = 2.0"},
       "low_frequency"},
      {kDecoder + "ffn = \"moe\"\nmoe.active = 3\nmoe.experts = 2\n",
       kText,
       "",
       "moe.active = 3",
       {"moe.experts = 2"},
       "1 to the 2"},
      {kDecoder + "ffn = \"none\"\nparallel = \"one-norm\"\n",
       kText,
       "",
       "parallel = \"one-norm\"",
       {"ffn = \"none\""},
       "nothing stands beside attention"},
      {kDecoder + "ffn = \"moe\"\nmoe.capacity = 0\n",
       kText,
       "",
       "moe.capacity = 0",
       {},
       "above 0"},
      {kTagger + "tied = true\n",
       kTags,
       "",
       "tied = true",
       {"task = \"tag\"", "kind = \"encoder\""},
       "labels"},
      {replaced(wide(kTagger, "7"), "encoder", "birnn"),
       kTags,
       "",
       "width = 7",
       {"kind = \"birnn\""},
       "even"},
      {replaced(replaced(kTagger, "encoder", "birnn"), "tag", "language"),
       replaced(kText, "context = 4", "context = 257"),
       "",
       "context = 257",
       {"kind = \"birnn\""},
       "at most 256"},
      {replaced(kDecoder, "decoder", "rnn-seq2seq") + "attention.heads = 3\n",
       kPairs,
       "",
       "attention.heads = 3",
       {"width = 8"},
       "divisor"},
      {kTranslator + t5 + "attention.t5_buckets = 6\nattention.t5_max_distance = 3\n",
       kPairs,
       "",
       "attention.t5_max_distance = 3",
       {"attention.t5_buckets = 6"},
       "more than 3"},
  };
}

std::vector<Refusal> refusals_of_data() {
  const std::string decoder = "kind = \"decoder\"", tag = "task = \"tag\"";
  const std::string encoder = "kind = \"encoder\"", vit = "kind = \"vit\"";
  const std::string translator = "kind = \"encoder-decoder\"";
  const std::string share = "validation_share = 0.5\n";
  return {
      {kDecoder, kText + "pairs = \"p\"\n", "", "pairs = \"p\"", {decoder}, "no use here"},
      {kTagger, kTags + "text = \"p\"\n", "", "text = \"p\"", {tag, encoder}, "no use here"},
      {kTranslator,
       "source = \"s\"\ntokenizer = \"word\"\n",
       "",
       "[data]",
       {"source = \"s\""},
       "beside source"},
      {kTranslator,
       "source = \"s\"\ntarget = \"u\"\n" + kPairs,
       "",
       "pairs = \"t\"",
       {"source = \"s\"", "target = \"u\""},
       "nothing, where source"},
      {kVit,
       kImages + "validation_images = \"v\"\n",
       "",
       "[data]",
       {"validation_images = \"v\""},
       "beside validation_images"},
      {kDecoder, replaced(kText, "\"t\"", "[\"\"]"), "", "text = [\"\"]", {}, "names of files"},
      {kDecoder, "tokenizer = \"byte\"\ncontext = 4\n", "", "[data]", {decoder}, "language: text"},
      {kDecoder,
       kText + share + "validation = \"v\"\n",
       "",
       "validation_share = 0.5",
       {"validation = \"v\""},
       "files of its own"},
      {kDecoder, kText + "validation_share = 1\n", "", "validation_share = 1", {}, "not 1"},
      {kDecoder, "text = \"t\"\ncontext = 4\n", "", "[data]", {decoder}, "tokenizer"},
      {kVit, kImages + "tokenizer = \"char\"\n", "", "tokenizer = \"char\"", {vit}, "no use here"},
      {kDecoder,
       kText + "target_tokenizer = \"char\"\n",
       "",
       "target_tokenizer = \"char\"",
       {decoder},
       "no use here"},
      {kDecoder, replaced(kText, "byte", "bite"), "", "tokenizer = \"bite\"", {}, "bpe:N"},
      {kTranslator,
       kPairs + "target_tokenizer = \"bpe:x\"\n",
       "",
       "target_tokenizer = \"bpe:x\"",
       {},
       "bpe:N"},
      {kDecoder,
       kText + "min_count = 2\n",
       "",
       "min_count = 2",
       {"tokenizer = \"byte\""},
       "unless the tokenizer"},
      {kTagger,
       replaced(kTags, "word", "char") + "word_shapes = true\n",
       "",
       "word_shapes = true",
       {"tokenizer = \"char\"", tag, encoder},
       "words are tagged"},
      {kTagger, kTags + "context = 4\n", "", "context = 4", {tag, encoder}, "max_length"},
      {kDecoder, "text = \"t\"\ntokenizer = \"byte\"\n", "", "[data]", {decoder}, "window"},
      {kDecoder, kText + "max_length = 4\n", "", "max_length = 4", {decoder}, "context"},
      {kVit, kImages + "max_length = 4\n", "", "max_length = 4", {vit}, "images"},
      {kTagger,
       kTags + "documents = \"line\"\n",
       "",
       "documents = \"line\"",
       {tag, encoder},
       "a text is read"},
      {replaced(kDecoder, "decoder", "rnn"),
       kText + "documents = \"line\"\n",
       "",
       "documents = \"line\"",
       {"kind = \"rnn\""},
       "recurrent"},
      {kDecoder, kText + "mask_share = 0.5\n", "", "mask_share = 0.5", {decoder}, "masked"},
      {replaced(kTagger, "\"tag\"", "\"masked\""),
       kText + "mask_share = 1\n",
       "",
       "mask_share = 1",
       {},
       "between 0 and 1"},
      {kDecoder, kText + "flip = true\n", "", "flip = true", {decoder}, "images"},
      {kDecoder, kText + "shift = 1\n", "", "shift = 1", {decoder}, "images"},
      {kVit,
       "label_names = [\"a\"]\nimage_folder = \"f\"\n",
       "",
       "label_names = [\"a\"]",
       {"image_folder = \"f\"", vit},
       "numbers"},
  };
}

std::vector<Refusal> refusals_of_training() {
  const auto row = [](std::string train, std::string at, std::vector<std::string> with,
                      std::string says) {
    return Refusal{kDecoder,      kText,           std::move(train),
                   std::move(at), std::move(with), std::move(says)};
  };
  const std::string sgd = "optimizer = \"sgd\"\n";
  return {
      row("accumulate = 5\n", "accumulate = 5", {"batch = 4"}, "at most train.batch"),
      row("parts = 5\n", "parts = 5", {"batch = 4"}, "at most train.batch"),
      row("parts = 2\ndevice = \"cuda\"\n", "parts = 2", {"device = \"cuda\""}, "cpu"),
      row("warmup = 11\n", "warmup = 11", {"steps = 10"}, "at most train.steps = 10"),
      row("learning_rate = 0\n", "learning_rate = 0", {}, "above 0"),
      row("beta1 = 1\n", "beta1 = 1", {}, "below 1"),
      row("beta2 = 1\n", "beta2 = 1", {}, "below 1"),
      row("epsilon = 0\n", "epsilon = 0", {}, "above 0"),
      row(sgd + "momentum = 1\n", "momentum = 1", {}, "below 1"),
      row(sgd + "nesterov = true\n", "nesterov = true", {}, "a momentum above 0"),
      row(sgd + "nesterov = true\nmomentum = 0\n", "nesterov = true", {"momentum = 0"},
          "a momentum above 0"),
      row("weight_decay = 2\nlearning_rate = 0.5\n", "weight_decay = 2", {"learning_rate = 0.5"},
          "below 1 / train.learning_rate"),
      row("label_smoothing = 1\n", "label_smoothing = 1", {}, "below 1"),
      row("eval_every = 0\neval_batches = 2\n", "eval_batches = 2", {"eval_every = 0"},
          "evaluations"),
      row("eval_every = 0\npatience = 2\n", "patience = 2", {"eval_every = 0"}, "evaluations"),
  };
}

std::string text_of(const Refusal& r) {
  return "[model]\n" + r.model + "[data]\n" + r.data + "[train]\nsteps = 10\nbatch = 4\n" + r.train;
}

// Of the line in the text, from 1.
std::string place(const std::string& file, const std::string& text, const std::string& line) {
  const std::size_t at = ("\n" + text).find("\n" + line + "\n");
  EXPECT_NE(at, std::string::npos) << line << " is not in\n" << text;
  return file + ":" +
         std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

// "model.attention.heads" of "attention.heads = 3".
std::string key_of(const std::string& text, const std::string& line) {
  const std::size_t at = ("\n" + text).find("\n" + line + "\n");
  const std::size_t header = ("\n" + text).rfind("\n[", at);
  const std::string table = text.substr(header + 1, text.find(']', header) - header - 1);
  return table + "." + line.substr(0, line.find(' '));
}

Error refusal_of(const std::string& path, const std::vector<std::string>& set) {
  try {
    load_recipe(path, set);
  } catch (const Error& e) {
    return e;
  }
  return {ErrorCode::failed, "", "nothing was refused", "", ""};
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

void expect_places(const Error& e, const std::string& file, const std::string& text,
                   const Refusal& r) {
  for (const std::string& line : r.with) {
    const std::string other = key_of(text, line) + ": " + place(file, text, line);
    EXPECT_NE(e.got().find(other), std::string::npos) << other << " is not in: " << e.what();
  }
  EXPECT_NE(std::string_view(e.what()).find(r.says), std::string_view::npos) << e.what();
}

TEST(Refusals, NameFileAndLineOfEveryKey) {
  const TempDir dir;
  std::vector<Refusal> all = refusals_of_models();
  for (auto more : {refusals_of_data(), refusals_of_training()})
    all.insert(all.end(), more.begin(), more.end());
  for (const Refusal& r : all) {
    const std::string text = text_of(r);
    SCOPED_TRACE(text);
    const std::string file = dir.file("r.toml", text);
    const Error e = refusal_of(file, {});
    EXPECT_EQ(e.where(), place(file, text, r.at)) << e.what();
    expect_places(e, file, text, r);
    EXPECT_EQ(count_of(e.what(), file + ":"), 1 + r.with.size()) << e.what();
    if (r.at == "[data]") continue;
    EXPECT_NE(e.problem().find("key " + key_of(text, r.at)), std::string::npos) << e.what();

    // The same, when the key comes with --set.
    const std::string key = key_of(text, r.at);
    const std::string without = replaced(text, "\n" + r.at + "\n", "\n");
    const std::string other = dir.file("s.toml", without);
    const Error set = refusal_of(other, {key + "=" + r.at.substr(r.at.find('=') + 2)});
    EXPECT_EQ(set.where(), "--set " + key) << set.what();
    expect_places(set, other, without, r);
  }
}

// Both by --set, and variants of a comparison.
TEST(Refusals, NameOptions) {
  const TempDir dir;
  const std::string file =
      dir.file("r.toml", text_of({kDecoder + "attention.heads = 2\n", kText, "", "", {}, ""}));
  const Error e = refusal_of(file, {"model.width=9", "model.attention.heads=2"});
  EXPECT_EQ(e.where(), "--set model.attention.heads");
  EXPECT_EQ(e.got(), "2 (model.width: --set model.width)");
  expect_says([&] { load_recipe(file, {}, {"model.width=9"}); },
              {file + ":5: key model.attention.heads", "(model.width: --vary model.width)"});
}

// Mistakes that only the data can reveal.
TEST(Refusals, NameFileAndLineOfWhatTheDataRefuses) {
  const data::SampleData data;
  const TempDir dir;
  const std::string images = "images = \"" + data.file("images.idx") + "\"\nlabels = \"" +
                             data.file("labels.idx") + "\"\n";
  const std::string text =
      "text = \"" + data.file("text.txt") + "\"\ntokenizer = \"byte\"\ncontext = 4\n";
  const auto line_of = [](const std::string& table, std::size_t line) {
    std::size_t at = 0;
    while (--line > 0) at = table.find('\n', at) + 1;
    return table.substr(at, table.find('\n', at) - at);
  };
  const std::vector<Refusal> all = {
      {replaced(kVit, "patch = 2", "patch = 5"),
       images,
       "",
       "patch = 5",
       {line_of(images, 1)},
       "pixels"},
      {kVit, images + "shift = 60\n", "", "shift = 60", {line_of(images, 1)}, "side of an image"},
      {kDecoder,
       text + "validation_share = 0\n",
       "patience = 2\n",
       "patience = 2",
       {"validation_share = 0"},
       "validation data"},
      {kVit, images, "eval_every = 2\n", "eval_every = 2", {}, "validation data"},
  };
  for (const Refusal& r : all) {
    const std::string recipe = text_of(r);
    SCOPED_TRACE(recipe);
    const std::string file = dir.file("r.toml", recipe);
    try {
      train::Job::begin(load_recipe(file), dir.file("run"));
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), place(file, recipe, r.at)) << e.what();
      expect_places(e, file, recipe, r);
    }
    EXPECT_FALSE(std::filesystem::exists(dir.file("run")));
  }
}

}  // namespace
}  // namespace heddle::recipe
