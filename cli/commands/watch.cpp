// heddle watch: a run as it goes on, in the terminal or on a page that renews itself.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "command.h"
#include "io/files/file.h"
#include "io/http/http_server.h"
#include "io/shell_word.h"
#include "language/language.h"
#include "report/run/terminal.h"
#include "report/run/training.h"
#include "report/run/watch.h"
#include "run/run_directory.h"
#include "signals.h"
#include "tell.h"

namespace heddle::cli::watch_command {

namespace {

using report::RunState;
using report::WatchView;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string run, bind = "127.0.0.1";
  int port = -1;  // -1: no page
};

// Looks at the files of a run, so rarely that looking takes a twentieth of the time at most.
class Follower {
 public:
  explicit Follower(std::string directory) : directory_(std::move(directory)) { look(); }

  void look() {
    const auto from = Clock::now();
    view_.run = report::view_run(directory_);
    view_.checkpoints = run::checkpoint_steps({directory_});
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - from);
    pause_ = std::max(milliseconds(500), 20 * took);
  }
  const WatchView& view() const { return view_; }
  bool running() const { return view_.run.state == RunState::running; }
  milliseconds pause() const { return pause_; }

  // Changes whenever there is something new to see.
  std::string version() const {
    return fmt::format("{} {} {} {}", view_.run.last_step(), view_.run.log.steps.size(),
                       view_.run.log.evals.size(), static_cast<int>(view_.run.state));
  }

 private:
  std::string directory_;
  WatchView view_;
  milliseconds pause_{500};
};

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

TerminalSize terminal_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

// Lines that are drawn again where they are. In a window of another size they are not where they
// were: it is cleared.
class Screen {
 public:
  void draw(const WatchView& view) {
    const TerminalSize size = terminal_size();
    std::string text;
    if (size != size_ && lines_ > 0)
      text += "\033[2J\033[H";
    else if (lines_ > 0)
      text += fmt::format("\033[{}A\r", lines_);
    // The cursor is below the last line: one row less, and one column, for no line may wrap.
    const auto lines = report::watch_screen(view, size.columns - 1, size.rows - 1);
    for (const std::string& line : lines) text += line + "\033[K\n";
    text += "\033[J";
    fmt::print("{}", text);
    std::fflush(stdout);
    size_ = size;
    lines_ = lines.size();
  }

 private:
  TerminalSize size_;
  std::size_t lines_ = 0;
};

// News since the last time, a line each: where there is no screen to draw on.
class Lines {
 public:
  void print(const WatchView& view) {
    const auto& log = view.run.log;
    // Of what was there before, the newest is enough. A run that went back to a checkpoint has
    // fewer lines than before.
    if (first_ || log.evals.size() < evals_)
      evals_ = log.evals.size() - (log.evals.empty() ? 0 : 1);
    for (; evals_ < log.evals.size(); ++evals_)
      fmt::print("{}\n", report::evaluation_line(view.run, evals_));
    if (!log.steps.empty() && log.steps.back().step != step_) {
      step_ = log.steps.back().step;
      fmt::print("{}\n", report::step_line(view.run));
    }
    first_ = false;
    std::fflush(stdout);
  }

 private:
  bool first_ = true;
  std::size_t evals_ = 0;
  double step_ = 0;
};

void end_if_interrupted() {
  if (caught_signal() != 0) throw ExitStatus{128 + caught_signal()};
}

// In pieces, so that an interruption ends it at once.
void sleep_for(milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    end_if_interrupted();
    std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), milliseconds(50)));
  }
  end_if_interrupted();
}

void say_how_it_stands(const Arguments& a, const WatchView& view) {
  fmt::print("{}\n", report::state_line(view.run));
  if (view.run.state == RunState::stopped)
    fmt::print("{}\n", tr("to go on: {}", "heddle train " + io::shell_word(a.run) + " --resume"));
}

void follow(const Arguments& a) {
  Follower follower(a.run);
  const bool live = isatty(STDOUT_FILENO) != 0;
  Screen screen;
  Lines lines;
  while (true) {
    if (live)
      screen.draw(follower.view());
    else
      lines.print(follower.view());
    if (!follower.running()) break;
    sleep_for(follower.pause());
    follower.look();
  }
  say_how_it_stands(a, follower.view());
}

// The page asks for what is new and takes it in place of what it shows, where the reader is.
std::string renewing_script() {
  return "const gone = " +
         nlohmann::json(tr("The watch has ended; this is what it saw last.")).dump() + R"js(;
let version = null;
async function renew() {
  try {
    const now = await (await fetch("version")).text();
    document.querySelector("#gone")?.remove();
    if (version !== null && now !== version) {
      const page = new DOMParser().parseFromString(await (await fetch("./")).text(), "text/html");
      const scrolled = [...document.querySelectorAll(".scroll")].map(e => e.scrollLeft);
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] ?? 0; });
      document.title = page.title;
      readCharts();
    }
    version = now;
  } catch {
    if (!document.querySelector("#gone")) {
      const note = document.createElement("p");
      note.id = "gone";
      note.className = "subtitle";
      note.textContent = gone;
      document.querySelector("header").append(note);
    }
  }
}
setInterval(renew, 2000);
renew();
)js";
}

void serve(const Arguments& a) {
  Follower follower(a.run);
  std::string page, page_version;
  const auto answer = [&](const io::HttpRequest& request) -> io::HttpResponse {
    if (request.path == "/version") return {200, "text/plain; charset=utf-8", follower.version()};
    if (request.path != "/") return io::http_refusal(404);
    if (page_version != follower.version()) {
      page = report::training_page(follower.view().run, {.script = renewing_script()});
      page_version = follower.version();
    }
    return {200, "text/html; charset=utf-8", page};
  };
  io::HttpServer server(a.bind, static_cast<std::uint16_t>(a.port), answer);
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  bool told = false;
  while (true) {
    if (!follower.running() && !std::exchange(told, true)) {
      say_how_it_stands(a, follower.view());
      fmt::print("{}\n", tr("the page stays until Ctrl-C"));
      std::fflush(stdout);
    }
    server.serve_for(follower.pause());
    end_if_interrupted();
    follower.look();
    if (follower.running()) told = false;
  }
}

void run(const Arguments& a) {
  catch_signals();
  if (a.port >= 0)
    serve(a);
  else
    follow(a);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("watch", "follow a run as it goes on");
  command->footer(
      "Shows progress, losses and speed of a run that another heddle trains, until it ends.\n"
      "Ctrl-C ends the watch and not the run.\n"
      "Examples:\n"
      "  heddle watch runs/char-gpt\n"
      "  heddle watch runs/char-gpt --serve 8080");
  auto a = std::make_shared<Arguments>();
  command->add_option("RUN", a->run, "directory of the run")->required();
  CLI::Option* port =
      command
          ->add_option("--serve", a->port,
                       "instead: a page that renews itself, on this port; 0: one that is free")
          ->type_name("PORT")
          ->check(CLI::Range(0, 65535));
  command
      ->add_option("--bind", a->bind,
                   "the address to listen on; absent: 127.0.0.1, which nobody but this machine "
                   "reaches")
      ->type_name("ADDRESS")
      ->needs(port);
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::watch_command
