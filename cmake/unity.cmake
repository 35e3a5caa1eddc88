# Small files of one folder are compiled together, up to eight at a time: half of the time of a clean
# build went into reading the same headers again for every file. Names in anonymous namespaces must
# differ within such a folder; -Wshadow is left to clang-tidy, which takes every file alone and so
# also sees a missing include.
set(HEDDLE_UNITY_FILES 8)

# heddle_unity_groups(<prefix> <most> <file>...): up to <most> of the files in turn form one unit.
function(heddle_unity_groups prefix most)
  list(LENGTH ARGN count)
  # Groups of equal size: nine files are five and four, not eight and one.
  math(EXPR groups "(${count} + ${most} - 1) / ${most}")
  set(index 0)
  foreach(file IN LISTS ARGN)
    math(EXPR group "${index} * ${groups} / ${count}")
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${prefix}_${group}")
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()

# heddle_unity(<target> <folder of the sources>...): a folder takes its subfolders with it.
function(heddle_unity target)
  if(NOT HEDDLE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(all ${target} SOURCES)
  foreach(folder IN LISTS ARGN)
    set(files ${all})
    list(FILTER files INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/")
    list(SORT files)
    string(REPLACE "/" "_" name "${folder}")
    heddle_unity_groups(${target}_${name} ${HEDDLE_UNITY_FILES} ${files})
  endforeach()
endfunction()
