// Memory that the system refuses, as an Error that says what it was for.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle {

// `doing` is the stage: "reading the data", "step 12".
[[noreturn]] void fail_memory(std::string_view doing);

// Calls body(). Memory that it does not get becomes Error(out_of_memory) with the stage before the
// place. Stages inside of stages read from the outside in: "reading the data: text.txt: ...".
template <class Body>
auto with_stage(std::string_view doing, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::out_of_memory) throw;
    fail(e.code(), std::string(doing) + ": " + e.where(), e.problem(), e.expected(), e.got());
  } catch (const std::bad_alloc&) {
    fail_memory(doing);
  } catch (const std::length_error&) {  // longer than any memory
    fail_memory(doing);
  }
}

}  // namespace heddle
