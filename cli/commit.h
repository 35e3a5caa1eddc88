// The commit that this program was built from; the build writes it (cmake/commit.cmake).
#pragma once

namespace heddle::cli {

const char* commit();  // "d411c0a1234f"; empty where there was no clone

}  // namespace heddle::cli
