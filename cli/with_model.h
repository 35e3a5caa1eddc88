// Shared by the commands that use a trained model.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/error.h"
#include "heddle/generation.h"
#include "heddle/trained_model.h"
#include "io/files/lines.h"
#include "model/config.h"

namespace heddle::cli {

struct ModelArguments {
  std::string model;
  std::string precision = "fp32";
  std::string weights;  // empty: as the files and the precision suggest
  std::string device = "cpu";
  bool as_json = false;
};

// MODEL, --precision, --weights, --device and --json. `exact`: fp64 is a precision too.
void declare_model(CLI::App& command, ModelArguments& arguments, bool exact = false);
DType precision_of(const ModelArguments& arguments);

// Loads the model. One of another task is an Error that names the command for it.
TrainedModel open_model(const ModelArguments& arguments, model::Task task);
TrainedModel open_model(const ModelArguments& arguments);  // of any task

// --beam, --length-penalty, --norm; --best says what is done with several.
void declare_beam(CLI::App& command, BeamOptions& options);
void declare_best(CLI::App& command, BeamOptions& options);
inline constexpr std::array kBeamOptions = {"--beam", "--beam-kind", "--length-penalty", "--norm"};
std::string given_beam_option(const CLI::App& command);  // one of them; empty where none was given

// The error with "--top-p" as its place where its problem is "option top_p", and "--prompt" where
// its place is "prompt" (or target, or image).
Error with_option_named(const Error& error);

// An option that only translating has a use for; empty where none was given.
void require_translation(const std::string& option, model::Task task);

// Runs what may refuse what the library calls "option top_p" or "prompt", and lets the error name
// the command line's: --top-p, --prompt.
template <class Body>
auto with_options_named(const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw with_option_named(e);
  }
}

// All of standard input as lines, which must be UTF-8.
io::TextLines read_standard_lines();
std::vector<std::string_view> all_of(const io::TextLines& lines);  // as long as the lines live

// "1,2,3" as tokens; an Error names the option.
std::vector<std::int32_t> parse_tokens(const std::string& list, std::string_view option);

// Without line breaks, which would make two lines of one.
std::string one_line(std::string text);

}  // namespace heddle::cli
