#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over the sources of the library and the command line,
# or over the files given. Every file is parsed alone, so this is also where a missing include and a
# shadowed name show. Flags come from the preset tidy, which is configured but not built.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/tidy/build.ninja ] || cmake --preset tidy >/dev/null
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- 'src/*.cpp' 'cli/*.cpp' |
    grep -vE '/test[^/]*\.cpp$' || true)
fi
[ "${#files[@]}" -gt 0 ] || exit 0
# Progress lines and counts of warnings in system headers are noise.
printf '%s\0' "${files[@]}" |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 -p build/tidy --quiet \
    2> >(grep -vE '^[0-9]+ warnings|Processing file ' >&2)
