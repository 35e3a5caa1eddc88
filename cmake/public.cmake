# The public entrance: which headers of src/ are installed, and as what. A header stays in the folder of
# its code and test; users see it as heddle/<room>/<name>.h. Its includes of other headers of this list
# (and of ops) are written as users have them; a header that includes anything else of src/ is not fit
# to be installed, and stops the configuration.
set(HEDDLE_PUBLIC
  # public name              of src/
  autograd.h                 autograd/record.h
  nn/attention.h             nn/attention/attention.h
  nn/attention_config.h      nn/attention/config.h
  nn/attention_observer.h    nn/attention/observer.h
  nn/kv_cache.h              nn/attention/cache.h
  nn/block.h                 nn/transformer/block.h
  nn/elman.h                 nn/rnn/elman.h
  nn/elman_stack.h           nn/rnn/stack.h
  nn/embedding.h             nn/linear/embedding.h
  nn/feed_forward.h          nn/ffn/ffn.h
  nn/linear.h                nn/linear/linear.h
  nn/mixture_of_experts.h    nn/ffn/moe.h
  nn/norm.h                  nn/norm/norm.h
  nn/parameters.h            nn/parameters.h
  nn/pass.h                  nn/pass.h
  nn/position/alibi.h        nn/position/alibi.h
  nn/position/distances.h    nn/position/distances.h
  nn/position/learned.h      nn/position/learned.h
  nn/position/rope.h         nn/position/rope.h
  nn/position/sinusoidal.h   nn/position/sinusoidal.h
  nn/position/t5.h           nn/position/t5.h
  nn/save.h                  nn/save.h
  nn/stack.h                 nn/transformer/stack.h
  nn/stack_config.h          nn/transformer/config.h
  inspect.h                  generate/inspect.h
  model/attention_maps.h     model/maps/attention_maps.h
  model/attention_stats.h    model/maps/attention_stats.h
  model/batch.h              model/batch.h
  model/config.h             model/config.h
  model/model.h              model/model.h
  text/bytes.h               text/bytes.h
  text/added_token.h         text/process/added_token.h
  text/frame.h               text/process/frame.h
  text/named_template.h      text/named_template.h
  text/tokenizer.h           text/tokenizer.h
  text/train.h               text/train.h
  data/codec.h               data/codec/codec.h
  data/image_fit.h           data/images/fit.h
  data/config.h              data/config.h
  data/dataset.h             data/dataset.h
  data/windows.h             data/windows.h
  optim/adamw.h              optim/adamw.h
  optim/optimizer.h          optim/optimizer.h
  optim/schedule.h           optim/schedule.h
  optim/step.h               optim/step.h
  recipe/train_config.h      recipe/train_config.h
  run/train_state.h          run/train_state.h
  train/evaluation.h         train/evaluation.h
  train/hooks.h              train/hooks.h
  train/open_recipe.h        train/open_recipe.h
  train.h                    train/train.h)

set(HEDDLE_PUBLIC_HEADERS "${PROJECT_BINARY_DIR}/public")  # as they are installed

set(public_names "")
set(public_sources "")
set(rest ${HEDDLE_PUBLIC})
while(rest)
  list(POP_FRONT rest name source)
  list(APPEND public_names "${name}")
  list(APPEND public_sources "${source}")
endwhile()

# One header as users have it.
function(heddle_publish name source)
  set(path "${PROJECT_SOURCE_DIR}/src/${source}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"([^\"]+)\"" "\\1" target "${include}")
    list(FIND public_sources "${target}" place)
    if(target MATCHES "^heddle/")
      continue()
    elseif(target MATCHES "^ops/([a-z0-9_]+)/([a-z0-9_]+)\\.h$" AND CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_2)
      set(public "heddle/ops/${CMAKE_MATCH_1}.h")
    elseif(place GREATER_EQUAL 0)
      list(GET public_names ${place} public)
      set(public "heddle/${public}")
    else()
      message(FATAL_ERROR "src/${source} is installed as heddle/${name}, but includes ${target}, "
        "which is not (cmake/public.cmake)")
    endif()
    string(REPLACE "${include}" "#include \"${public}\"" text "${text}")
  endforeach()
  file(CONFIGURE OUTPUT "${HEDDLE_PUBLIC_HEADERS}/heddle/${name}" CONTENT "${text}" @ONLY)
endfunction()

set(umbrella "")
foreach(name source IN ZIP_LISTS public_names public_sources)
  heddle_publish("${name}" "${source}")
  string(APPEND umbrella "#include \"heddle/${name}\"\n")
endforeach()

# All of it in one: include/heddle, ops, and the list above.
file(GLOB plain RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/include/heddle/*.h")
list(TRANSFORM plain REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN plain "" plain)
file(CONFIGURE OUTPUT "${HEDDLE_PUBLIC_HEADERS}/heddle/heddle.h" @ONLY CONTENT
[[// Everything that Heddle offers to programs.
#pragma once

@plain@#include "heddle/ops.h"

@umbrella@]])
