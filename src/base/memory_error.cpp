#include "base/memory_error.h"

namespace heddle {

void fail_memory(std::string_view doing) {
  fail(ErrorCode::out_of_memory, doing, "out of memory",
       "a smaller input, or more memory for this process (the machine's, or a limit of ulimit -v "
       "or of a control group)");
}

}  // namespace heddle
