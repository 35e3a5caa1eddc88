# Small files of one folder are compiled together, up to eight at a time: half of the time of a clean
# build went into reading the same headers again for every file. Names in anonymous namespaces must
# differ within such a folder; -Wshadow is left to the second compiler, which takes every file alone
# and so also sees a missing include.
set(HEDDLE_UNITY_FILES 8)

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
    list(LENGTH files count)
    # Groups of equal size: nine files are five and four, not eight and one.
    math(EXPR groups "(${count} + ${HEDDLE_UNITY_FILES} - 1) / ${HEDDLE_UNITY_FILES}")
    string(REPLACE "/" "_" name "${folder}")
    set(index 0)
    foreach(file IN LISTS files)
      math(EXPR group "${index} * ${groups} / ${count}")
      set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${target}_${name}_${group}")
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
endfunction()
