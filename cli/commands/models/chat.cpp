// heddle chat: a conversation with a model that was trained for it.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/chat.h"
#include "help/help.h"
#include "io/files/file.h"
#include "language/language.h"
#include "language/layout.h"
#include "line_editor.h"
#include "print_json.h"
#include "sampling_options.h"
#include "tell.h"
#include "with_model.h"
#include "word_stream.h"

namespace heddle::cli::chat_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  SamplingArguments sampling;
  std::string system;
  std::optional<std::string> template_file;
  bool show_prompt = false;
  const CLI::App* command = nullptr;
};

volatile std::sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C ends an answer and not the program.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &before_);
  }
  ~Interrupts() { sigaction(SIGINT, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_{};
};

json to_json(const std::vector<Message>& messages) {
  json list = json::array();
  for (const Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
  return list;
}

json tokens_with_text(const LanguageModel& model, const std::vector<std::int32_t>& tokens) {
  json list = json::array();
  for (const std::int32_t id : tokens)
    list.push_back({{"id", id}, {"text", model.decode({&id, 1})}});
  return list;
}

class Conversation {
 public:
  Conversation(const Arguments& a, Chat chat)
      : a_(a),
        chat_(std::move(chat)),
        options_(sampling_of(*a.command, a.sampling, chat_.model())),
        seed_(a.sampling, options_.sampling, a.model.as_json) {
    options_.cancelled = [] { return interrupted != 0; };
  }

  void in_terminal();
  void of_lines();

 private:
  void show_prompt(const std::string& message) const;
  void say(const std::string& message);   // in a terminal
  bool obey(const std::string& command);  // false: the conversation is over
  std::optional<std::string> read_message(LineEditor& editor) const;

  const Arguments& a_;
  Chat chat_;
  GenerationOptions options_;
  ToldSeed seed_;
};

// On standard error, a token a line: its id, and its text as programs write strings.
void Conversation::show_prompt(const std::string& message) const {
  if (!a_.show_prompt) return;
  for (const std::int32_t id : chat_.prompt(message).tokens)
    tell("{}\t{}\n", id,
         json(chat_.model().decode({&id, 1})).dump(-1, ' ', false, json::error_handler_t::replace));
}

void Conversation::say(const std::string& message) {
  show_prompt(message);
  interrupted = 0;
  WordStream words(terminal_columns());
  const auto show = [](const std::string& text) { std::cout << text << std::flush; };
  const Generation g = chat_.say(message, options_, [&](std::int64_t, std::string_view piece) {
    seed_.tell_once();
    show(words.add(piece));
  });
  show(words.finish() + "\n");
  const bool full = g.prompt_tokens + std::ssize(g.samples[0].tokens) >= chat_.model().context();
  switch (g.samples[0].finish) {
    case Finish::cancelled: tell("{}\n", tr("(stopped)")); break;
    case Finish::length:
      tell("{}\n", full ? tr("(the context of {} tokens is full: /reset begins anew)",
                             chat_.model().context())
                        : tr("(cut at {} tokens: --tokens)", g.samples[0].tokens.size()));
      break;
    default: break;
  }
  show("\n");
}

struct CommandHelp {
  const char *name, *text;
};

constexpr CommandHelp kCommands[] = {
    {"/reset", mark("a new conversation")},
    {"/save FILE", mark("writes the conversation as a line of JSON")},
    {"/help", mark("this list")},
    {"/quit", mark("ends the program, as Ctrl-D does")},
};

void show_help() {
  for (const CommandHelp& c : kCommands) std::cout << two_columns(c.name, tr(c.text));
  const std::string more = tr(
      "Ctrl-C stops an answer. A line that ends with \\ goes on with the next one. A message that "
      "begins with / has a space before it.");
  std::cout << wrapped(more, help_columns(), 0) << "\n\n";
}

bool Conversation::obey(const std::string& command) {
  const std::size_t space = command.find(' ');
  const std::string name = command.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : command.substr(space + 1);
  if (name == "/quit") return false;
  if (name == "/help") {
    show_help();
  } else if (name == "/reset") {
    chat_.reset();
    std::cout << tr("A new conversation.") << "\n\n";
  } else if (name == "/save" && !argument.empty()) {
    io::write_file_atomic(argument, json({{"messages", to_json(chat_.messages())}})
                                            .dump(-1, ' ', false, json::error_handler_t::replace) +
                                        "\n");
    std::cout << tr("{} messages are in {}.", chat_.messages().size(), argument) << "\n\n";
  } else {
    tell("{}\n\n", name == "/save" ? tr("/save needs the name of a file.")
                                   : tr("There is no command {}; /help lists them.", name));
  }
  return true;
}

// Lines that end with \ belong together. Nothing at the end of the conversation.
std::optional<std::string> Conversation::read_message(LineEditor& editor) const {
  std::string message;
  while (true) {
    const TypedLine line = editor.read(message.empty() ? "> " : "… ");
    if (line.kind == TypedLine::Kind::end) return std::nullopt;
    if (line.kind == TypedLine::Kind::interrupted) {
      tell("{}\n", tr("Ctrl-D ends the program."));
      return "";
    }
    message += line.text;
    if (!message.ends_with('\\')) return message;
    message.back() = '\n';
  }
}

void Conversation::in_terminal() {
  const LanguageModel& model = chat_.model();
  const auto show = [](const std::string& text) {
    std::cout << wrapped(text, help_columns(), 0) << "\n";
  };
  show(tr("{}: {:.1f} million parameters, a context of {} tokens.",
          std::filesystem::path(a_.model.model).filename().string(),
          static_cast<double>(model.parameters()) / 1e6, model.context()));
  show(tr("A line is a message. /help lists commands, Ctrl-C stops an answer, Ctrl-D ends."));
  std::cout << "\n";
  const Interrupts while_talking;
  LineEditor editor;
  while (const std::optional<std::string> typed = read_message(editor)) {
    if (typed->find_first_not_of(" \n\t") == std::string::npos) continue;
    try {
      if (typed->starts_with('/')) {
        if (!obey(*typed)) return;
      } else {
        with_options_named([&] { say(*typed); });
      }
    } catch (const Error& e) {
      if (e.code() == ErrorCode::out_of_memory) throw;
      tell("{}\n\n", e.what());
    }
  }
  std::cout << "\n";
}

// A message a line, answers on standard output.
void Conversation::of_lines() {
  const io::TextLines lines = read_standard_lines();
  json answers = json::array();
  for (const std::string_view line : all_of(lines)) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string message(line);
    json answer;
    if (a_.model.as_json && a_.show_prompt)
      answer["prompt"] = tokens_with_text(chat_.model(), chat_.prompt(message).tokens);
    else
      show_prompt(message);
    const Generation g = with_options_named([&] { return chat_.say(message, options_); });
    seed_.tell_once();
    if (!a_.model.as_json) {
      std::cout << g.text() << "\n" << std::flush;
      continue;
    }
    answer["text"] = g.text();
    answer["tokens"] = g.samples[0].tokens;
    answer["finish"] = to_string(g.samples[0].finish);
    answer["prompt_tokens"] = g.prompt_tokens;
    answer["reused_tokens"] = g.reused_tokens;
    answer["seconds"] = g.prompt_seconds + g.decode_seconds;
    answers.push_back(std::move(answer));
  }
  if (!a_.model.as_json) return;
  json document = {{"messages", to_json(chat_.messages())}, {"answers", std::move(answers)}};
  if (is_drawn(options_.sampling)) document["seed"] = options_.sampling.seed;
  print_json(document);
}

void run(const Arguments& a) {
  ChatOptions options{.system = a.system};
  if (a.template_file)
    options.chat_template = io::read_file(*a.template_file, std::size_t{1} << 20);
  Conversation conversation(
      a, Chat(LanguageModel(open_model(a.model, model::Task::language)), std::move(options)));
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (terminal && !a.model.as_json) return conversation.in_terminal();
  conversation.of_lines();
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("chat", "a conversation with a model that was trained for it");
  command->footer("Example: heddle chat SmolLM2-135M-Instruct.gguf --temperature 0.2 --top-p 0.9");
  auto a = std::make_shared<Arguments>();
  a->command = command;
  declare_model(*command, a->model);
  command->add_option("--system", a->system, "what the model is told before everything else");
  command->add_option("--template", a->template_file,
                      "a file with a chat template (Jinja) instead of the model's own");
  command->add_flag("--show-prompt", a->show_prompt,
                    "show the tokens that the model reads, id and text, on standard error");
  declare_sampling(*command, a->sampling);
  command->get_option("--tokens")
      ->description(mark("at most so many an answer; absent: what fits the context"));
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::chat_command
