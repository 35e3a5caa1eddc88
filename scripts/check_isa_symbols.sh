#!/usr/bin/env bash
# Objects compiled for an instruction set may define nothing that runs on a machine without it.
#
#  - Weak symbols (inline functions and templates that were not inlined): the linker keeps one copy
#    of each, and code for any machine may end up calling the copy with AVX-512 in it. Allowed only
#    where the name says the instruction set.
#  - Initialisers that run before main().
#
# usage: [NM=nm] check_isa_symbols.sh ISA OBJECT...
set -euo pipefail

isa=$1
shift
[ $# -gt 0 ] || { echo "check_isa_symbols: no objects for $isa" >&2; exit 2; }

# Mangled names, because c++filt gives up on some lambdas. A namespace is written as its length and
# name after its parent; S_, S0_ ... stand for a parent that came before: heddle::cpu, or heddle alone.
case $isa in
  avx2) own='(6heddle3cpu|S[0-9A-Z]*_(3cpu)?)4avx2|(3hwy|S[0-9A-Z]*_)6N_AVX2' ;;
  avx512) own='(6heddle3cpu|S[0-9A-Z]*_(3cpu)?)6avx512|(3hwy|S[0-9A-Z]*_)6N_AVX3' ;;
  avx512_bf16) own='(6heddle3cpu|S[0-9A-Z]*_(3cpu)?)11avx512_bf16' ;;
  neon_bf16) own='(6heddle3cpu|S[0-9A-Z]*_(3cpu)?)9neon_bf16' ;;
  amx) own='(6heddle3cpu|S[0-9A-Z]*_(3cpu)?)3amx' ;;
  *) echo "check_isa_symbols: unknown instruction set $isa" >&2; exit 2 ;;
esac

# DW.ref.*: data that the exception tables point to, no code. __clang_call_terminate: two calls, the
# same instructions everywhere.
found=$("${NM:-nm}" -A --defined-only "$@" | awk -v own="$own" '
  { type = $(NF - 1); name = $NF }
  type ~ /^[WVu]$/ && name !~ own && name !~ /^DW\.ref\.|^__clang_call_terminate$/ { print "weak: " $0 }
  name ~ /^_GLOBAL__(sub_)?I_|static_initialization_and_destruction/ { print "runs before main(): " $0 }')
if [ -n "$found" ]; then
  echo "Compiled for $isa, but could run on machines without it:"
  c++filt <<<"$found" | sed 's/^\([^:]*: \)[^:]*CMakeFiles./\1/' | head -40
  exit 1
fi
