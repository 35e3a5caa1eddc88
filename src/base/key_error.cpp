#include "base/key_error.h"

#include <utility>

namespace heddle {

KeyError::KeyError(std::string where, std::vector<std::string> keys, std::string remark,
                   std::string expected, std::string got)
    : Error(ErrorCode::invalid_argument, std::move(where), "key " + keys.front() + remark,
            std::move(expected), std::move(got)),
      keys_(std::move(keys)),
      remark_(std::move(remark)) {}

KeyError KeyError::renamed(const std::string& where,
                           const std::function<std::string(const std::string&)>& name) const {
  std::vector<std::string> names;
  names.reserve(keys_.size());
  for (const std::string& key : keys_) names.push_back(name(key));
  return {where, std::move(names), remark_, expected(), got()};
}

}  // namespace heddle
