// Where a trained model looks while it reads a prompt: the attention maps of all layers and heads,
// as JSON on standard output.
//     maps_to_json RUN PROMPT
#include <heddle/inspect.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

// A token may hold any character.
std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      all += std::string("\\") + c;
    else if (code < 0x20)
      all += std::string("\\u00") + (code < 0x10 ? "0" : "1") + "0123456789abcdef"[code % 16];
    else
      all += c;
  }
  return all + "\"";
}

template <class T, class Write>
void write_list(const std::vector<T>& values, const Write& write) {
  std::cout << "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) std::cout << ", ";
    write(values[i]);
  }
  std::cout << "]";
}

void write_tokens(const std::vector<std::string>& tokens) {
  write_list(tokens, [](const std::string& token) { std::cout << quoted(token); });
}

// Row i holds what query i gives to each key: it sums to 1.
void write_map(const heddle::Tensor& map) {  // [queries, keys]
  const std::vector<float> values = map.to_vector<float>();
  const auto keys = static_cast<std::ptrdiff_t>(map.size(1));
  std::vector<std::vector<float>> rows;
  for (auto at = values.begin(); at != values.end(); at += keys) rows.emplace_back(at, at + keys);
  write_list(rows, [](const std::vector<float>& row) {
    write_list(row, [](float weight) { std::cout << weight; });
  });
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) return std::cerr << "maps_to_json RUN PROMPT\n", 2;
  const heddle::TrainedModel model(arguments[1]);
  const heddle::Inspection seen = heddle::inspect(model, {.prompt = arguments[2]});
  const heddle::model::AttentionMaps& maps = seen.maps;
  std::cout << "{\"layers\": [";
  for (std::size_t i = 0; i < maps.layers().size(); ++i) {
    const heddle::model::AttentionLayer& layer = maps.layers()[i];
    std::cout << (i > 0 ? ",\n " : "") << "{\"name\": " << quoted(layer.name) << ", \"queries\": ";
    write_tokens(seen.queries(layer));
    std::cout << ", \"keys\": ";
    write_tokens(seen.keys(layer));
    std::cout << ", \"heads\": [";
    for (std::int64_t head = 0; head < layer.heads; ++head) {
      if (head > 0) std::cout << ",\n  ";
      write_map(maps.rows(i, head, 0, layer.queries));
    }
    std::cout << "]}";
  }
  std::cout << "]}\n";
} catch (const heddle::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
