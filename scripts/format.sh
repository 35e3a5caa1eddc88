#!/usr/bin/env bash
# Formats every C++ source that git knows or would add. --check only lists what would change.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do [ -f "$file" ] && printf '%s\0' "$file"; done |
  xargs -0 -r -P "$(nproc)" -n 20 clang-format-19 --style=file "${mode[@]}"
