#!/usr/bin/env bash
# Installs the packages of packages.txt that this machine lacks, and nothing else.
# usage: scripts/setup.sh [--tools]
#   --tools  also what only developers of Heddle need: clang, clang-format, clang-tidy
set -euo pipefail
cd "$(dirname "$0")/.."

upto='^# tools$'
[ "${1:-}" = --tools ] && upto='^# end$'
mapfile -t wanted < <(sed "/$upto/q" packages.txt | sed 's/#.*//' | awk 'NF { print $1 }')

missing=()
if command -v dpkg-query >/dev/null; then
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' | awk '$2 == "installed" { print $1 }')
  for package in "${wanted[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
  done
else
  echo "setup: this is not a Debian system; Heddle needs what packages.txt lists: ${wanted[*]}" >&2
  exit 0
fi
[ "${#missing[@]}" -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "setup: missing packages: ${missing[*]}" >&2
  echo "setup: run this as root, or have them installed: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
install=("${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}")
# The package lists may be absent (fresh containers) or stale: update only then.
"${install[@]}" >&2 || { "${as_root[@]}" apt-get update >&2 && "${install[@]}" >&2; }
