// A list of texts as an argument: a std::vector of std::string, of std::string_view or of const
// char*, or {"one", "another"}. It holds views, so that the texts must outlive the call.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace heddle {

class Texts {
 public:
  Texts(std::initializer_list<std::string_view> texts) : all_(texts) {}

  template <class List>
    requires requires(const List& list) { std::string_view(*list.begin()); }
  Texts(const List& list) {  // NOLINT(google-explicit-constructor): every such list is one
    all_.reserve(list.size());
    for (const auto& text : list) all_.emplace_back(text);
  }

  std::span<const std::string_view> all() const { return all_; }

 private:
  std::vector<std::string_view> all_;
};

}  // namespace heddle
