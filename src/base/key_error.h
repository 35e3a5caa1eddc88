// Errors about keys of a recipe. The code that refuses a value knows which keys it is about; the
// code that read the file knows where they are. The error carries the keys from the one to the
// other, which turns them into places (io/toml/key_places.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/error.h"

namespace heddle {

class KeyError : public Error {
 public:
  // keys[0] is refused; the others are those it does not go with. `remark` follows the first key in
  // the message: " has no use here".
  KeyError(std::string where, std::vector<std::string> keys, std::string remark,
           std::string expected, std::string got);

  const std::vector<std::string>& keys() const noexcept { return keys_; }

  // The same complaint with the keys as a recipe has them.
  KeyError renamed(const std::string& where,
                   const std::function<std::string(const std::string&)>& name) const;

 private:
  std::vector<std::string> keys_;
  std::string remark_;
};

}  // namespace heddle
