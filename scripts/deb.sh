#!/usr/bin/env bash
# A Debian package of the program: its manual page, completions and documentation with it.
#   scripts/deb.sh BUILD FOLDER      BUILD has heddle built; FOLDER gets heddle_VERSION_ARCH.deb
# The same build gives the same bytes: times are those of the last commit.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:?usage: scripts/deb.sh BUILD FOLDER}
out=${2:?usage: scripts/deb.sh BUILD FOLDER}
for tool in dpkg-deb dpkg-shlibdeps strip; do
  command -v "$tool" >/dev/null || { echo "deb: $tool is missing (packages dpkg-dev and binutils)" >&2; exit 1; }
done
version=$(sed -nE 's/^project\(heddle VERSION ([0-9.]+).*/\1/p' "$here/CMakeLists.txt")
architecture=$(dpkg --print-architecture)
# Who publishes a package says so. `.invalid` is the domain of addresses that nobody has (RFC 2606).
maintainer=${DEBFULLNAME:-Heddle developers} address=${DEBEMAIL:-heddle@heddle.invalid}
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct 2>/dev/null || stat -c %Y "$here/CHANGELOG.md")
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root doc=$work/root/usr/share/doc/heddle
umask 022
cmake --install "$build" --prefix "$root/usr" --component program >/dev/null
mkdir -p "$doc" "$root/DEBIAN" "$root/usr/share/lintian/overrides"
strip --strip-unneeded --remove-section=.comment "$root/usr/bin/heddle"
# Debian's zsh and fish look for completions of packages here, as /usr/local's do not.
mkdir -p "$root/usr/share/zsh"
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
gzip -9n "$root/usr/share/man/man1/heddle.1"
cp "$here/README.md" "$here/README.zh-CN.md" "$doc/"

cat >"$doc/copyright" <<TEXT
Heddle, a Transformer engine.

Copyright $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) $maintainer

Licensed under the Apache License, Version 2.0. On Debian systems, its full
text is in /usr/share/common-licenses/Apache-2.0.
TEXT
{
  printf 'heddle (%s) unstable; urgency=medium\n\n' "$version"
  printf '  * Version %s; /usr/share/doc/heddle/CHANGELOG.md.gz says what is new.\n\n' "$version"
  printf ' -- %s <%s>  %s\n' "$maintainer" "$address" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.gz"
gzip -9nc "$here/CHANGELOG.md" >"$doc/CHANGELOG.md.gz"
# The program is one file that is copied to machines without these libraries, so it carries them; a
# new version of Debian's archives means a new build. The word is the name of a key in GGUF files
# (tokenizer.ggml.seperator_token_id).
cat >"$root/usr/share/lintian/overrides/heddle" <<'TEXT'
heddle: embedded-library
heddle: spelling-error-in-binary seperator separator *
TEXT

# dpkg-shlibdeps wants a source package around it.
mkdir -p "$work/debian"
printf 'Source: heddle\n\nPackage: heddle\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e "$root/usr/bin/heddle" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
cat >"$root/DEBIAN/control" <<TEXT
Package: heddle
Version: $version
Architecture: $architecture
Maintainer: $maintainer <$address>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Suggests: bible-kjv, curl
Section: science
Priority: optional
Description: Transformer engine: train, compare and inspect language models
 Heddle trains Transformers and what came before them from recipes of a few
 lines, compares variants side by side, shows where every attention head looks,
 measures the claims of textbooks, and runs models of others. It is one
 program; no Python is needed.
TEXT
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -hd "@$SOURCE_DATE_EPOCH"
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$root" "$out/heddle_${version}_${architecture}.deb" >/dev/null
echo "$out/heddle_${version}_${architecture}.deb"
