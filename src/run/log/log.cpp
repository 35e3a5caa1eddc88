#include "run/log/log.h"

#include "io/json/json.h"

namespace heddle::run {

TrainingLog parse_training_log(std::string_view text, const std::string& where) {
  TrainingLog log;
  std::size_t number = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return log;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ++number;
    if (line.empty()) continue;
    const io::Json j = io::Json::parse(line, where + ":" + std::to_string(number));
    const double step = j.at("step").number();
    if (j.has("eval_loss")) {
      log.evals.push_back({step, j.at("eval_loss").number()});
      continue;
    }
    log.steps.push_back({step, j.at("loss").number(), j.at("lr").number(), j.at("tokens").number(),
                         j.at("seconds").number(), j.at("tokens_per_s").number(),
                         j.at("grad_norm").number(), j.at("live_bytes").number(),
                         j.number_or("sent_bytes", 0), j.number_or("communication_seconds", 0),
                         j.number_or("communication_hidden", 0)});
  }
}

std::vector<double> step_seconds(const TrainingLog& log) {
  std::vector<double> all;
  double step = 0, tokens = 0;
  for (const TrainingLog::Step& line : log.steps) {
    all.push_back((line.tokens - tokens) / (line.step - step) / line.tokens_per_s);
    step = line.step;
    tokens = line.tokens;
  }
  return all;
}

}  // namespace heddle::run
