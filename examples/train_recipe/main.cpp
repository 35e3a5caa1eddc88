// A recipe trained from a program, as `heddle train` does it, with a callback for every step; then
// the model that came of it writes.
//     train_recipe RECIPE OUT STEPS PROMPT
#include <heddle/language_model.h>
#include <heddle/train.h>

#include <algorithm>
#include <iostream>
#include <string>

int main(int count, char** arguments) try {
  if (count != 5) return std::cerr << "train_recipe RECIPE OUT STEPS PROMPT\n", 2;
  const std::string recipe = arguments[1], out = arguments[2], steps = arguments[3];

  double best = 1e9;  // of the losses so far
  heddle::train::Hooks hooks;
  hooks.on_step = [&](const heddle::train::StepReport& report) {
    best = std::min(best, report.loss);
    if (report.step % 20 == 0)
      std::cout << "step " << report.step << "  loss " << report.loss << "\n";
  };
  hooks.on_eval = [](const heddle::train::EvalReport& report) {
    std::cout << "step " << report.step << ": perplexity " << report.result.perplexity << "\n";
  };
  hooks.should_stop = [&] { return best < 0.1; };  // good enough; a checkpoint is written

  const heddle::train::Outcome outcome =
      heddle::train::run(recipe, out, {.set = {"train.steps=" + steps}, .hooks = hooks});
  std::cout << outcome.state.step << " steps, " << outcome.state.tokens << " tokens\n";

  const heddle::LanguageModel model(out);
  std::cout << arguments[4]
            << model.generate(arguments[4], {.tokens = 40, .sampling = {.temperature = 0}}).text()
            << "\n";
} catch (const heddle::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
