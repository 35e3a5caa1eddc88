#!/usr/bin/env bash
# Objects compiled for an instruction set may define nothing that runs on a machine without it.
#
#  - Weak symbols (inline functions and templates that were not inlined): the linker keeps one copy
#    of each, and code for any machine may end up calling the copy with AVX-512 in it. Allowed only
#    where the name says the instruction set.
#  - Initialisers that run before main().
#
# usage: check_isa_symbols.sh ISA OBJECT...
set -euo pipefail

isa=$1
shift
case $isa in
  avx2) own='heddle::cpu::avx2::|hwy::N_AVX2::' ;;
  avx512) own='heddle::cpu::avx512::|hwy::N_AVX3::' ;;
  avx512_bf16 | amx) own="heddle::cpu::$isa::" ;;
  *) echo "check_isa_symbols: unknown instruction set $isa" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || { echo "check_isa_symbols: no objects for $isa" >&2; exit 2; }

# DW.ref.*: data that the exception tables point to, no code.
found=$(nm -A -C --defined-only "$@" | awk -v own="$own" '
  { line = $0; sub(/^[^:]*:[0-9a-f]* /, "", line); type = substr(line, 1, 1); name = substr(line, 3) }
  type ~ /[WVuwv]/ && name !~ own && name !~ /^DW\.ref\./ { print "weak: " $0 }
  name ~ /^_GLOBAL__(sub_)?I_|^__static_initialization_and_destruction/ { print "runs before main(): " $0 }')
if [ -n "$found" ]; then
  echo "Compiled for $isa, but could run on machines without it:"
  echo "$found"
  exit 1
fi
