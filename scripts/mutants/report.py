"""What a run of mutants found, as text and JSON."""

from collections import Counter, defaultdict
from pathlib import PurePath


def folder_of(path: str) -> str:
    """src/train/step.cpp -> src/train"""
    return "/".join(PurePath(path).parts[:-1][:2])


def rates(mutants):
    """{folder: (killed, judged)}, with the total as 'all'."""
    killed, judged = Counter(), Counter()
    for m in mutants:
        if m.get("status"):
            for name in (folder_of(m["file"]), "all"):
                judged[name] += 1
                killed[name] += m["status"] == "killed"
    return {name: (killed[name], judged[name]) for name in sorted(judged)}


def difference(m) -> str:
    """A survivor as a diff of what it changes."""
    reason = m["why"] + (f"; not run: {', '.join(m['not_run'])}" if m.get("not_run") else "")
    return (f"--- {m['file']}:{m['line']}  mutant {m['id']}, {m['operator']}: {reason}\n"
            f"-{m['original']}\n+{m['mutated']}\n")


def table(mutants) -> str:
    lines = []
    for m in mutants:
        if m.get("status"):
            by = m.get("by") or m["why"]
            why = f" ({m['why']})" if m.get("by") and m["why"] != "failed" else ""
            lines.append(f"{m['id']:>5}  {m['status']:<8}  {m['file']}:{m['line']}  {m['operator']}: "
                         f"{shortened(m['original'])} -> {shortened(m['mutated'])}  | {by}{why}")
    return "\n".join(lines)


def shortened(text: str, most=60) -> str:
    return text if len(text) <= most else text[:most - 3] + "..."


def summary(mutants) -> str:
    survivors = [m for m in mutants if m.get("status") == "survived"]
    lines = [f"{'folder':<24} killed of      share"]
    for name, (killed, judged) in rates(mutants).items():
        lines.append(f"{name:<24} {killed:>6} of {judged:>4}  {100 * killed / judged:>5.1f} %")
    by_operator = defaultdict(list)
    for m in mutants:
        if m.get("status"):
            by_operator[m["operator"]].append(m["status"] == "killed")
    lines.append("")
    for name, found in sorted(by_operator.items()):
        lines.append(f"{name:<24} {sum(found):>6} of {len(found):>4}")
    if survivors:
        lines += ["", f"{len(survivors)} survivors:", ""] + [difference(m) for m in survivors]
    return "\n".join(lines)
