#!/usr/bin/env python3
"""Training on several processes over MPI, through the program.

    ranks.py HEDDLE WORK [few | all]

Every kind of model ends with the same model.safetensors on 1, 2, 3, 4 and 8 ranks, and after a move to
another number of them; a rank that is killed or stops is named, and the run goes on; one that is asked
to end stops all of them after a step. `few` is a part of that. Exits with 77 where there is no mpirun
or no plug-in, and with 1 when something is not as it should be.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

HEDDLE = Path(sys.argv[1]).resolve()
WORK = Path(sys.argv[2]).resolve()
ALL = "few" not in sys.argv[3:]
PLUGIN = HEDDLE.parent / "libheddle_mpi.so"

# Many processes on few cores, perhaps in a container and as root; no network beside this machine.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]
ENVIRONMENT = {**os.environ, "HEDDLE_THREADS": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

MODEL = '[model]\nkind = "{kind}"\nlayers = 1\nwidth = 16\n'
TRAIN = "[train]\nsteps = 6\nbatch = 8\nsave_every = 2\nkeep = 9\nlog_every = 1\neval_every = 3\nlearning_rate = 1e-2\nparts = 8\n"


def check(condition, *what):
    if not condition:
        print("failed:", *what)
        sys.exit(1)


def command(ranks, *arguments):
    start = [*MPIRUN, "-np", str(ranks)] if ranks > 1 else []
    return [*start, str(HEDDLE), *arguments]


def heddle(ranks, *arguments, status=0, environment=None):
    done = subprocess.run(command(ranks, *map(str, arguments)), cwd=WORK, env=environment or ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)
    check(done.returncode == status, ranks, arguments, done.returncode, done.stdout, done.stderr)
    return done


def digest(run):
    return hashlib.sha256((WORK / run / "model.safetensors").read_bytes()).hexdigest()


def log_of(run):
    lines = [json.loads(line) for line in (WORK / run / "log.jsonl").read_text().splitlines()]
    for line in lines:
        for key in ("seconds", "tokens_per_s", "live_bytes", "sent_bytes", "communication_seconds",
                    "communication_hidden"):
            line.pop(key, None)
    return lines


def data():
    (WORK / "text.txt").write_text("".join(f"{i * i} is the square of {i}\n" for i in range(300)))
    words = [f"w{i}" for i in range(12)]
    line = lambda i, n: " ".join(words[(i * 7 + j * j) % 12] for j in range(n))
    (WORK / "pairs.tsv").write_text("".join(f"{line(i, 2 + i % 5)}\t{line(i + 1, 1 + i % 6)}\n" for i in range(61)))
    (WORK / "tags.tsv").write_text("".join(
        "".join(f"{words[(i + j) % 12]}\tT{(i + j) % 3}\n" for j in range(1 + i % 6)) + "\n" for i in range(61)))
    count, side = 61, 8
    pixels = bytes((i * 31 + i // 97) & 255 for i in range(count * side * side))
    (WORK / "images.idx").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, count, side, side) + pixels)
    (WORK / "labels.idx").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(i % 5 for i in range(count)))


def recipes():
    heads = "[model.attention]\nheads = 2\n"
    text = '[data]\ntext = "text.txt"\ntokenizer = "char"\ncontext = 12\n'
    share = "validation_share = 0.2\n"
    return {
        "decoder": MODEL.format(kind="decoder") + "dropout = 0.1\n" + heads + text + share + TRAIN,
        "experts": MODEL.format(kind="decoder") + 'ffn = "moe"\n' + heads +
                   "[model.moe]\nexperts = 4\nactive = 2\ncapacity = 1.0\n" + text + share + TRAIN,
        "translation": MODEL.format(kind="encoder-decoder") + "dropout = 0.1\n" + heads +
                       '[data]\npairs = "pairs.tsv"\ntokenizer = "word"\n' + share + TRAIN,
        "vit": MODEL.format(kind="vit") + "patch = 4\n" + heads +
               '[data]\nimages = "images.idx"\nlabels = "labels.idx"\n' + share + TRAIN,
        "tagger": MODEL.format(kind="birnn") + 'task = "tag"\n[data]\ntags = "tags.tsv"\ntokenizer = "word"\n' + share + TRAIN,
    }


def same_bytes(names):
    for name in names:
        (WORK / f"{name}.toml").write_text(recipes()[name])
        heddle(1, "train", f"{name}.toml", "--out", f"{name}-1")
        for ranks in (2, 3, 4, 8) if ALL else (2, 3):
            run = f"{name}-{ranks}"
            said = heddle(ranks, "train", f"{name}.toml", "--out", run)
            check(digest(run) == digest(f"{name}-1"), name, "on", ranks, "ranks has other bytes")
            check(log_of(run) == log_of(f"{name}-1"), name, "on", ranks, "ranks has another log")
            # One rank speaks.
            check(said.stdout.count("best validation loss") == 1, said.stdout)
            check(said.stderr.count(f"{ranks} ranks over") == 1, said.stderr)


def shared_gradients(names):
    """Gradients that travel while they are computed: the same bytes, also where a run turns to them."""
    shard = ["--set", "train.shard=gradients"]
    for name in names:
        for ranks in (2, 3, 4, 8) if ALL else (3,):
            run = f"{name}-shared-{ranks}"
            heddle(ranks, "train", f"{name}.toml", *shard, "--set", "train.recompute=true" if ranks == 4 else "train.recompute=false",
                   "--out", run)
            check(digest(run) == digest(f"{name}-1"), name, "with shared gradients on", ranks, "ranks has other bytes")
            check(log_of(run) == log_of(f"{name}-1"), name, "with shared gradients has another log")
    run = "turned"
    heddle(2, "train", f"{name}.toml", "--out", run)
    for later in (WORK / run / "checkpoints").iterdir():
        if int(re.search(r"step-(\d+)", later.name)[1]) > 2:
            later.unlink()
    heddle(3, "train", f"{name}.toml", *shard, "--out", run, "--resume")
    check(digest(run) == digest(f"{name}-1"), "a run that turned to shared gradients")
    said = [line for line in map(json.loads, (WORK / run / "log.jsonl").read_text().splitlines()) if "loss" in line]
    check(all(line["sent_bytes"] > 0 and line["communication_seconds"] > 0 and 0 <= line["communication_hidden"] <= 1
              for line in said), "what talking takes", said)
    refused = heddle(1, "train", f"{name}.toml", *shard, "--set", "train.shard=parameters", "--out", "no", status=2)
    check("train.shard" in refused.stderr and "not there" in refused.stderr, refused.stderr)


def moves(name):
    """Begun on some ranks, gone on with on others."""
    for first, second, third in ((4, 1, 2), (2, 4, 1), (1, 3, 8)) if ALL else ((2, 1, 3),):
        run = f"moved-{first}-{second}"
        heddle(first, "train", f"{name}.toml", "--out", run)
        for step, ranks in ((2, second), (4, third)):
            for later in (WORK / run / "checkpoints").iterdir():
                if int(re.search(r"step-(\d+)", later.name)[1]) > step:
                    later.unlink()
            heddle(ranks, "train", run, "--resume")
            check(digest(run) == digest(f"{name}-1"), "moved", first, second, third, "at", step)
            check(log_of(run) == log_of(f"{name}-1"), "the log of a run that moved")


def without_the_key(name):
    """Several ranks take 8 parts and say so; one process goes on with the same."""
    text = recipes()[name].replace("parts = 8\n", "")
    (WORK / "plain.toml").write_text(text)
    said = heddle(2, "train", "plain.toml", "--out", "chosen")
    check("has no train.parts: this run takes 8" in said.stderr, said.stderr)
    check(digest("chosen") == digest(f"{name}-1"), "8 parts are the usual ones")
    for later in (WORK / "chosen" / "checkpoints").glob("step-6*"):
        later.unlink()
    heddle(1, "train", "plain.toml", "--out", "chosen", "--resume")
    check(digest("chosen") == digest(f"{name}-1"), "resumed by one process")
    heddle(1, "train", "plain.toml", "--out", "single")
    refused = heddle(2, "train", "single", "--resume", status=2)
    check(refused.stderr.count("was begun without train.parts") == 1, refused.stderr)


def plans(name):
    """Memory of a rank as planned, to 1 %: its first step, in numbers that the report keeps."""
    totals = {}
    for ranks, shard in ((2, "optimizer"), (4, "optimizer"), (2, "gradients"), (4, "gradients")):
        wide = ["--set", "model.width=128", "--set", "train.steps=2", "--set", f"train.shard={shard}"]
        plan = json.loads(heddle(1, "plan", f"{name}.toml", *wide, "--ranks", ranks, "--json").stdout)
        check(plan["ranks"] == ranks and plan["parts"] == 8, plan)
        run = f"planned-{ranks}-{shard}"
        done = json.loads(heddle(ranks, "train", f"{name}.toml", *wide, "--set", "train.eval_every=0", "--out", run,
                                 "--json").stdout)
        planned, measured = plan["peak_bytes"]["total"], done["peak_bytes"]
        totals[ranks, shard] = planned
        print(f"{ranks} ranks, {shard}: planned {planned} bytes, measured {measured}")
        check(abs(planned - measured) <= 0.01 * measured, "planned", planned, "measured", measured)
        one = json.loads(heddle(1, "plan", f"{name}.toml", *wide, "--json").stdout)
        share = plan["peak_bytes"]["optimizer"] / one["peak_bytes"]["optimizer"]
        check(abs(share - 1 / ranks) < 0.05, "the optimiser's share", share)
        log = [json.loads(line) for line in (WORK / run / "log.jsonl").read_text().splitlines()]
        # A few numbers about losses and lengths besides, and shards of whole pieces of 1024 are not quite equal.
        check(abs(log[0]["sent_bytes"] / plan["sent_bytes_per_step"] - 1) < 0.05, "bytes", log, plan)
    check(all(totals[ranks, "gradients"] < 0.9 * totals[ranks, "optimizer"] for ranks in (2, 4)), "less memory", totals)


def processes(run, ranks, timeout, eval_every=0):
    """A long run, started; the process numbers of its ranks."""
    running = subprocess.Popen(
        command(ranks, "train", "decoder.toml", "--set", "train.steps=100000", "--set", "train.schedule=constant", "--set",
                f"train.eval_every={eval_every}", "--set", "train.save_every=5", "--set", f"train.timeout={timeout}", "--out", run),
        cwd=WORK, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if list((WORK / run / "checkpoints").glob("step-*5.safetensors")):
            break
        time.sleep(0.05)
    else:
        running.kill()
        check(False, "no checkpoint", running.communicate())
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else []
            own = (entry / "exe").resolve() == HEDDLE and (entry / "cwd").resolve() == WORK
        except OSError:
            continue
        for word in words if own else []:
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(word.split(b"=")[1])] = int(entry.name)
    check(len(found) == ranks, "ranks found", found)
    return running, found


def failures():
    # kill -9 of a rank: the others name it, or mpirun does, which ends them.
    running, ranks = processes("killed", 3, 60)
    os.kill(ranks[1], signal.SIGKILL)
    _, errors = running.communicate(timeout=60)
    check(running.returncode != 0, "a rank was killed, and nobody cared")
    check("rank 1 (process" in errors and "is gone" in errors and "--resume" in errors, errors)
    check(re.search(r"step \d+: rank 1", errors), errors)
    whole("killed")
    # The same where nearly all of the time is spent in evaluations: no loss was bad.
    running, ranks = processes("judged", 2, 60, eval_every=1)
    os.kill(ranks[1], signal.SIGKILL)
    _, errors = running.communicate(timeout=60)
    check("rank 1 (process" in errors and "--resume" in errors and "finite" not in errors, errors)
    if not ALL:
        return
    # One that stops to answer is given up after train.timeout.
    running, ranks = processes("stopped", 3, 2)
    os.kill(ranks[2], signal.SIGSTOP)
    try:
        _, errors = running.communicate(timeout=90)
    finally:
        for number in ranks.values():
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                pass
    check("rank 2 (process" in errors and "did not answer within 2 s" in errors, errors)
    whole("stopped")
    # One that is asked to end stops all after a step.
    running, ranks = processes("asked", 3, 60)
    os.kill(ranks[2], signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    check(running.returncode == 130, running.returncode, errors)
    check(errors.count("stopped at step") == 1, errors)
    whole("asked")


def whole(run):
    """Whatever happened, a run of one process goes on from the last checkpoint, three steps further."""
    steps = max(int(re.search(r"step-(\d+)", p.name)[1]) for p in (WORK / run / "checkpoints").iterdir())
    running = subprocess.Popen(command(1, "train", run, "--resume"), cwd=WORK, env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    newest = lambda: max(int(re.search(r"step-(\d+)", p.name)[1]) for p in (WORK / run / "checkpoints").iterdir()
                         if p.name.endswith("safetensors") and p.name.startswith("step"))
    while newest() <= steps and time.monotonic() < end:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    check(newest() > steps and running.returncode == 130, "does not go on:", errors)
    lines = log_of(run)
    check([line["step"] for line in lines] == list(range(1, len(lines) + 1)), "its log has every step once")


def complaints():
    # Without the plug-in it says what to do.
    alone = {**ENVIRONMENT, "HEDDLE_MPI": str(WORK / "nothing.so")}
    said = heddle(2, "train", "decoder.toml", "--out", "no", status=2, environment=alone)
    check(said.stderr.count("could not be opened") == 1 and "HEDDLE_MPI" in said.stderr, said.stderr)
    (WORK / "false.so").write_text("not a library")
    said = heddle(2, "train", "decoder.toml", "--out", "no", status=2,
                  environment={**ENVIRONMENT, "HEDDLE_MPI": str(WORK / "false.so")})
    check("false.so" in said.stderr, said.stderr)
    # Ranks that differ are named before the first step, once: in instructions, in validation data.
    low = ["-np", "1", "-x", "HEDDLE_ISA=generic", str(HEDDLE), "train", "decoder.toml", "--out", "no"]
    said = subprocess.run([*MPIRUN, *low, ":", "-np", "1", *low[4:]], cwd=WORK, env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=120)
    check(said.returncode != 0 and said.stderr.count("has another instruction set") == 1, said.stderr)
    here, there = WORK / "here", WORK / "there"
    for folder, word in ((here, "one"), (there, "eon")):
        folder.mkdir(exist_ok=True)
        (folder / "valid.txt").write_text(f"this is text {word}\n" * 40)
    shared = (WORK / "decoder.toml").read_text()
    (WORK / "apart.toml").write_text(re.sub(r"validation_share.*", "", shared))
    each = [str(HEDDLE), "train", str(WORK / "apart.toml"), "--set", f"data.text={WORK / 'text.txt'}", "--set",
            "data.validation=/proc/self/cwd/valid.txt", "--out", str(WORK / "no")]
    said = subprocess.run([*MPIRUN, "-np", "1", "--wdir", str(here), *each, ":", "-np", "1", "--wdir", str(there), *each],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    check(said.returncode != 0 and said.stderr.count("has another validation data") == 1, said.stderr)
    # A mistake in the recipe is said once.
    said = heddle(3, "train", "decoder.toml", "--set", "train.stepz=3", "--out", "no", status=2)
    check(said.stderr.count("unknown key train.stepz") == 1, said.stderr)
    said = heddle(2, "train", "decoder.toml", "--out", "decoder-1", status=2)
    check(said.stderr.count("is there already") == 1, said.stderr)
    said = heddle(2, "train", "decoder.toml", "--set", "train.parts=9", "--out", "no", status=2)
    check(said.stderr.count("train.parts · train.accumulate") == 1, said.stderr)
    # More ranks than parts: some have nothing to do, and that is said.
    said = heddle(3, "train", "decoder.toml", "--set", "train.parts=2", "--out", "idle")
    check("1 of the ranks have nothing to compute" in said.stderr, said.stderr)
    torch = {**ENVIRONMENT, "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
    said = heddle(1, "train", "decoder.toml", "--out", "no", status=2, environment=torch)
    check("torchrun" in said.stderr and "mpirun -np 2" in said.stderr, said.stderr)
    check(not (WORK / "no").exists(), "a directory was left")
    # A loss that is not finite ends all, once.
    wild = ["--set", "train.optimizer=sgd", "--set", "train.clip=0", "--set", "train.learning_rate=1000", "--set",
            "train.weight_decay=0", "--set", "train.warmup=0", "--set", "train.steps=50"]
    said = heddle(2, "train", "decoder.toml", *wild, "--out", "wild", status=1)
    check(len(re.findall(r"heddle: train: step \d+: ", said.stderr)) == 1, said.stderr)


def main():
    if shutil.which("mpirun") is None or not PLUGIN.exists():
        print("skipped: no mpirun, or no libheddle_mpi.so beside the program")
        return 77
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    data()
    names = list(recipes()) if ALL else ["decoder"]
    same_bytes(names)
    shared_gradients(names)
    moves("decoder")
    without_the_key("decoder")
    plans("decoder")
    complaints()
    failures()
    return 0


if __name__ == "__main__":
    sys.exit(main())
