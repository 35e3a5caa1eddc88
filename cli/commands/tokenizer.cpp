// heddle tokenizer train: a tokenizer.json from training text.
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.h"
#include "command.h"
#include "heddle/error.h"
#include "io/files/gzip.h"
#include "io/files/lines.h"
#include "io/files/memory_limit.h"
#include "language/language.h"
#include "print_json.h"
#include "report/page/numbers.h"
#include "text/train.h"

namespace heddle::cli::tokenizer_command {

namespace {

using text::TokenizerSpec;
using text::TrainingProgress;

struct Options {
  std::string spec, out = "tokenizer.json";
  std::vector<std::string> files, specials;
  bool as_json = false;
};

std::string size(std::int64_t bytes) { return report::bytes_text(static_cast<double>(bytes)); }

// One line that changes on a terminal; otherwise one line for each half of the work.
class Progress {
 public:
  void operator()(const TrainingProgress& progress) {
    const bool counting = progress.phase == TrainingProgress::Phase::counting;
    if (is_terminal_) {
      std::cerr << "\r\033[K"
                << (counting
                        ? tr("counting words: {} of {}", size(progress.done), size(progress.total))
                        : tr("merging: {} of {} tokens", progress.done, progress.total))
                << std::flush;
      shown_ = true;
    } else if (progress.phase != last_) {
      std::cerr << (counting ? tr("counting words: {}", size(progress.total))
                             : tr("merging: {} tokens", progress.total))
                << "\n";
    }
    last_ = progress.phase;
  }
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::optional<TrainingProgress::Phase> last_;
};

text::SpecialTokens special_tokens(const std::vector<std::string>& names) {
  text::SpecialTokens specials;
  for (const std::string& name : names) {
    specials.pad |= name == "pad";
    specials.begin |= name == "begin";
    specials.end |= name == "end";
    specials.unknown |= name == "unknown";
    specials.mask |= name == "mask";
  }
  return specials;
}

std::vector<std::string> read_texts(const Options& options, const TokenizerSpec& spec) {
  const bool any_bytes =
      spec.kind == TokenizerSpec::Kind::byte || spec.kind == TokenizerSpec::Kind::bpe;
  std::vector<std::string> texts;
  texts.reserve(options.files.size());
  std::size_t bytes = 0;
  for (const std::string& file : options.files) {
    texts.push_back(any_bytes ? io::read_maybe_gzip(file, io::kMaxText) : io::read_text(file));
    if (texts.back().empty()) fail(ErrorCode::io, file, "is empty", "a text");
    bytes += texts.back().size();
    if (bytes > io::file_limit())
      fail(ErrorCode::io, file, "is too large together with the files before it",
           "at most " + io::file_limit_text(), std::to_string(bytes) + " bytes");
  }
  return texts;
}

void report(const Options& options, const text::Tokenizer& tokenizer, std::size_t bytes,
            double seconds) {
  if (options.as_json) {
    const nlohmann::json document = {{"tokenizer", options.out},
                                     {"kind", tokenizer.kind()},
                                     {"vocabulary", tokenizer.vocabulary()},
                                     {"bytes", bytes},
                                     {"seconds", seconds}};
    cli::print_json(document);
    return;
  }
  std::cout << tr("{}: {}, {} tokens, from {} in {:.2f} s", options.out, tokenizer.kind(),
                  tokenizer.vocabulary(), size(bytes), seconds)
            << "\n";
}

void train(const Options& options) {
  const TokenizerSpec spec = TokenizerSpec::parse(options.spec, "--spec");
  if (spec.kind == TokenizerSpec::Kind::file)
    fail(ErrorCode::invalid_argument, "--spec", "a tokenizer.json needs no training",
         "char, byte, word, word:N or bpe:N", options.spec);
  const Stopwatch stopwatch;
  const std::vector<std::string> texts = read_texts(options, spec);
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  const std::vector<std::string_view> views(texts.begin(), texts.end());

  std::unique_ptr<text::Tokenizer> tokenizer;
  {
    Progress progress;
    try {
      tokenizer =
          train_tokenizer(spec, views, special_tokens(options.specials), std::ref(progress));
    } catch (const Error& e) {
      if (e.where() != "tokenizer") throw;
      fail(e.code(), "--spec " + options.spec, e.problem(), e.expected(), e.got());
    }
  }
  tokenizer->save(options.out);
  const double seconds = stopwatch.seconds();
  if (spec.kind == TokenizerSpec::Kind::bpe && tokenizer->vocabulary() < spec.vocabulary)
    std::cerr << tr("heddle: the text has no more pairs that come twice: {} tokens instead of {}",
                    tokenizer->vocabulary(), spec.vocabulary)
              << "\n";
  report(options, *tokenizer, bytes, seconds);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenizer", "make tokenizers");
  command->require_subcommand(1);
  CLI::App* training = command->add_subcommand("train", "a tokenizer.json from training text");
  command->footer("Example: heddle tokenizer train --spec bpe:4096 --out tokenizer.json input.txt");
  training->footer(command->get_footer());
  auto options = std::make_shared<Options>();
  training
      ->add_option(
          "--spec", options->spec,
          "char, byte, word (seen at least twice), word:N (seen N times) or bpe:N (N tokens)")
      ->type_name("KIND")
      ->required();
  training->add_option("--out", options->out, "the file to write")
      ->type_name("FILE")
      ->capture_default_str();
  training
      ->add_option("--specials", options->specials,
                   "special tokens, with commas: pad,begin,end,unknown,mask")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"pad", "begin", "end", "unknown", "mask"}));
  training->add_option("FILE", options->files, "text, plain or gzip")->required();
  training->add_flag("--json", options->as_json, "one JSON document on standard output");
  training->callback([options] { train(*options); });
}

}  // namespace heddle::cli::tokenizer_command
