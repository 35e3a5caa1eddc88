#!/usr/bin/env bash
# What `make run` shows: trains a small model on real text, lets it write, and says what to try next.
# A run that was interrupted goes on; one that is done only writes. Arguments go to `heddle train`.
set -euo pipefail
cd "$(dirname "$0")/.."
heddle=build/release/heddle
run=runs/first

# `--out` names the run here, too: it is what writes afterwards.
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) run=${2:?--out needs a folder}; shift 2 ;;
    --out=*) run=${1#--out=}; shift ;;
    *) arguments+=("$1"); shift ;;
  esac
done

if [ -e "$run/recipe.toml" ]; then
  "$heddle" train "$run" --resume "${arguments[@]}"
else
  "$heddle" train recipes/llama-style.toml --out "$run" "${arguments[@]}"
fi

seed=1
for prompt in "And God said" "In the beginning" "Blessed are"; do
  printf '\n'
  "$heddle" generate "$run" --prompt "$prompt" --tokens 60 --temperature 0.7 --seed "$seed"
  seed=$((seed + 1))
done

cat <<TEXT

The curves of the run are in $run/report.html. Three things to try next:

  $heddle generate $run --prompt "Let there be" --samples 3
  $heddle train recipes/llama-style.toml --set model.attention.look_back=16 --out runs/short-sighted
  $heddle eval $run
TEXT
