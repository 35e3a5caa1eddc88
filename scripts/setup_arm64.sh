#!/usr/bin/env bash
# What a build for ARM64 on another machine needs: the cross-compiler and the emulator of Debian, and
# the libraries of packages.txt for arm64 in a folder of their own, build/arm64-sysroot. The system's
# package manager learns no second architecture: its state is untouched but for the two programs.
# usage: scripts/setup_arm64.sh
set -euo pipefail
cd "$(dirname "$0")/.."

sysroot=$PWD/build/arm64-sysroot
programs=(g++-aarch64-linux-gnu qemu-user-static)

# Libraries that Heddle is built with. Benchmarks are for real machines, and MPI is a plug-in.
mapfile -t libraries < <(sed '/^# tools$/q' packages.txt | sed 's/#.*//' |
  awk '/-dev$/ && $1 !~ /^lib(benchmark|openmpi)-dev$/ { print $1 }')

command -v apt-get >/dev/null || {
  echo "setup_arm64: this is not a Debian system; see docs/building.md for what a build for ARM64 needs" >&2
  exit 1
}

missing=()
for program in "${programs[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$program" 2>/dev/null | grep -qx installed || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup_arm64: run this as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup_arm64: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  install=("${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}")
  "${install[@]}" >&2 || { "${as_root[@]}" apt-get update >&2 && "${install[@]}" >&2; }
fi

# Done before, with the same list?
stamp=$sysroot/.packages
[ "$(cat "$stamp" 2>/dev/null)" = "${libraries[*]}" ] && exit 0

# A state of apt's own, in which nothing is installed and arm64 is the only architecture.
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/root"
: >"$state/status"
cat >"$state/apt.conf" <<CONF
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Debug::NoLocking "true";
CONF
export APT_CONFIG=$state/apt.conf
echo "setup_arm64: fetching ${libraries[*]} for arm64 into build/arm64-sysroot" >&2
apt-get -q update >&2
apt-get -q install -y --no-install-recommends --download-only "${libraries[@]}" >&2
for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$state/root"; done
rm -rf "$sysroot"
mkdir -p "$(dirname "$sysroot")"
mv "$state/root" "$sysroot"
echo "${libraries[*]}" >"$stamp"
