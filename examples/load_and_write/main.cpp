// A model that `heddle train` made, inside a program: it goes on with a text.
//     load_and_write RUN PROMPT
#include <heddle/language_model.h>

#include <iostream>

int main(int count, char** arguments) try {
  if (count != 3) return std::cerr << "load_and_write RUN PROMPT\n", 2;
  const heddle::LanguageModel model(arguments[1]);
  std::cout << arguments[2];
  model.generate(arguments[2], {.tokens = 80, .sampling = {.temperature = 0.8, .seed = 1}},
                 [](std::int64_t, std::string_view piece) { std::cout << piece << std::flush; });
  std::cout << "\n";
} catch (const heddle::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
