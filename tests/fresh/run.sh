#!/usr/bin/env bash
# The first hour on a bare machine: a minimal Debian in a folder, a clean clone in it, and the two
# commands of the README, nothing else. Tells how long each took, and what the machine lacked.
#
#   tests/fresh/run.sh FOLDER [SUITE]        SUITE: bookworm (Debian 12, the default) or trixie (13)
#
# Needs root and debootstrap; FOLDER grows to some gigabytes and is kept, so that a second call only
# clones and runs again. MIRROR names another archive than debootstrap's own. The clone has what is
# committed, not what lies beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?usage: tests/fresh/run.sh FOLDER [SUITE]}
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || { echo "fresh: chroot needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh: debootstrap is missing (its package has that name)" >&2; exit 2; }
mkdir -p "$folder"
root=$(cd "$folder" && pwd)/$suite
log=$(cd "$folder" && pwd)/$suite.log
: >"$log"

inside() { chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  TERM=dumb DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
  ${https_proxy:+https_proxy="$https_proxy"} bash -euo pipefail -c "$1"; }

# The time on the clock, and that of processors: on a machine that others use as well, the second is what counts.
step() {
  local name=$1 start=$SECONDS took
  shift
  printf '\n== %s\n' "$name" >>"$log"
  if took=$(TIMEFORMAT='%U %S'; { time "$@" >>"$log" 2>&1; } 2>&1); then
    printf '%-46s %5d s %8.0f s of processors\n' "$name" $((SECONDS - start)) \
      "$(awk '{ print $1 + $2 }' <<<"$took")"
  else
    printf '%-46s failed after %d s; the end of %s:\n' "$name" $((SECONDS - start)) "$log" >&2
    tail -20 "$log" >&2
    exit 1
  fi
}

mounted=()
leave() { for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -R -l "${mounted[i]}" 2>/dev/null || true; done; }
trap leave EXIT

[ -e "$root/bin/bash" ] || step "a minimal Debian ($suite)" debootstrap --variant=minbase "$suite" "$root" ${MIRROR:+"$MIRROR"}
for place in proc dev; do
  mount --rbind "/$place" "$root/$place" && mount --make-rslave "$root/$place" && mounted+=("$root/$place")
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
# Whom this machine trusts (a proxy that reads TLS has a certificate of its own), the new one does, too:
# its package ca-certificates takes what lies here.
trusted=$root/usr/local/share/ca-certificates
mkdir -p "$trusted"
awk -v folder="$trusted" '/BEGIN CERTIFICATE/ { file = sprintf("%s/machine-%03d.crt", folder, ++n) } file { print > file }
  /END CERTIFICATE/ { close(file); file = "" }' /etc/ssl/certs/ca-certificates.crt 2>/dev/null || true

step "apt-get install make git" inside "apt-get update && apt-get install -y make git"
rm -rf "$root/root/heddle"
step "a clean clone" git clone --quiet --no-hardlinks "$here" "$root/root/heddle"
step "make run" inside "cd ~/heddle && make run"
step "make chat" inside "cd ~/heddle && echo 'What is the capital of France?' | make chat"
step "make chat, again" inside "cd ~/heddle && echo 'And of Italy?' | make chat"
step "make install, and what it tells of itself" inside "cd ~/heddle && make install && heddle --version && heddle lab average-of-two"
step "make deb, its package installed and removed" inside "cd ~/heddle && make deb && dpkg -i build/heddle_*.deb && /usr/bin/heddle --version && dpkg -r heddle"
# What the README promises of the text: three answers of the model of `make run`.
grep -q "The curves of the run are in runs/first/report.html" "$log" || { echo "fresh: make run did not come to its end" >&2; exit 1; }
echo "all good; $log has what was printed"
