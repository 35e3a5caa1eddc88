#!/usr/bin/env bash
# The program with its manual page, completions, recipes and documentation as one archive, for systems
# without a package: unpack it anywhere and run bin/heddle.
#   scripts/tarball.sh BUILD FOLDER
# The program carries all it needs but the C library; its oldest version is told at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:?usage: scripts/tarball.sh BUILD FOLDER}
out=${2:?usage: scripts/tarball.sh BUILD FOLDER}
version=$(sed -nE 's/^project\(heddle VERSION ([0-9.]+).*/\1/p' "$here/CMakeLists.txt")
name=heddle-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
cmake --install "$build" --prefix "$work/$name" --component program >/dev/null
strip --strip-unneeded "$work/$name/bin/heddle"
cp "$here/LICENSE" "$here/README.md" "$here/README.zh-CN.md" "$here/CHANGELOG.md" "$work/$name/"
mkdir -p "$out"
time=$(git -C "$here" log -1 --format=@%ct 2>/dev/null || echo @0)
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="$time" -C "$work" -c "$name" |
  gzip -9n >"$out/$name.tar.gz"
oldest=$(objdump -T "$work/$name/bin/heddle" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
echo "$out/$name.tar.gz (needs the C library from $oldest on)"
