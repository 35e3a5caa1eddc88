#!/usr/bin/env bash
# Builds cuda_tests from the source tree alone, for a GPU of one architecture:
#     tests/cuda/build.sh FOLDER [ARCHITECTURE, such as 90a or 80]
# It takes nvcc and a compiler of C++20; CMake builds the same program where Heddle itself is built.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
architecture=${2:-90a}
cd "$(dirname "$0")/../.."

# What CMake generates: the list of routines. The CPU's are not needed here.
{
  echo 'namespace heddle::cpu { void add_routines() {} }'
  echo 'namespace heddle::cuda {'
  for file in src/ops/*/*.cu; do echo "void add_$(basename "$file" .cu)_routines();"; done
  echo 'void add_routines() {'
  for file in src/ops/*/*.cu; do echo "  add_$(basename "$file" .cu)_routines();"; done
  echo '}}'
} > "$out/routines.cpp"

# nvcc hands .cpp files to the host's compiler, with CUDA's headers.
sources=(src/backend/cuda/*.cu src/backend/cuda/*/*.cu src/ops/*/*.cu src/ops/*/cuda/*.cu src/base/*.cpp src/tensor/*.cpp src/backend/routine.cpp src/backend/repeat.cpp
  src/ops/support/check.cpp src/backend/meta/*.cpp src/backend/cuda/*.cpp src/backend/cuda/*/*.cpp tests/mock/*.cpp tests/cuda/*.cpp
  "$out/routines.cpp")
for file in "${sources[@]}"; do
  case $(basename "$file") in test*) continue ;; esac
  printf '%s\0%s\0' "$file" "$out/$(echo "$file" | tr / _).o"
done | xargs -0 -n 2 -P "$(nproc)" sh -c "nvcc -std=c++20 -O2 -DHEDDLE_HAS_CUDA=1 -Iinclude -Isrc -Itests \
  --expt-relaxed-constexpr --extended-lambda \
  -gencode=arch=compute_$architecture,code=sm_$architecture -c \"\$0\" -o \"\$1\""
nvcc -o "$out/cuda_tests" "$out"/*.o -ldl
