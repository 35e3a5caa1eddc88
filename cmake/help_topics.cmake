# Chapters of docs/ and their Chinese in docs/zh/ become part of the program, so that `heddle help
# TOPIC` needs no network and no installed files. A raw string may hold 64 KiB at most in some compilers; pieces are joined.
set(HEDDLE_HELP_TOPICS recipes data tokenizers training distributed attention recurrent generate compare inspect pretrained check)

function(heddle_help_topics output)
  set(entries "")
  foreach(topic IN LISTS HEDDLE_HELP_TOPICS)
    set(file "${PROJECT_SOURCE_DIR}/docs/${topic}.md")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(REGEX MATCH "^# ([^\n]*)" found "${text}")
    set(heading "${CMAKE_MATCH_1}")
    set(file "${PROJECT_SOURCE_DIR}/docs/zh/${topic}.md")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" chinese)
    string(APPEND entries "    {\"${topic}\", \"${heading}\",\n     R\"~md~(${text})~md~\",\n"
      "     R\"~md~(${chinese})~md~\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT
"// Made by cmake/help_topics.cmake.
#include \"help/help_topics.h\"

#include <array>

namespace heddle::cli {

std::span<const HelpTopic> help_topics() {
  static constexpr std::array topics = std::to_array<HelpTopic>({
@entries@  });
  return topics;
}

}  // namespace heddle::cli
")
endfunction()
