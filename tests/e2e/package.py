#!/usr/bin/env python3
"""The Debian package and the archive of the program: what is in them, and that it runs from where they are
unpacked.

    package.py SOURCE BUILD WORK

Skipped (77) where Debian's tools for packages are not there.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE, BUILD, WORK = (Path(p).resolve() for p in sys.argv[1:4])
FAILURES = []


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(str, seen))}"[:2000])


def run(*command, **variables):
    kept = {k: v for k, v in os.environ.items() if k not in ("HEDDLE_LANG", "LANG", "LC_ALL")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=WORK, timeout=200,
                          env={**kept, **variables})
    check(done.returncode == 0, command, done.returncode, done.stderr)
    return done.stdout


def check_program(program, version):
    check(run(program, "--version").startswith(f"heddle {version}"), "version", run(program, "--version"))
    check("average-of-two" in run(program, "lab", "average-of-two"), "a claim of the lab")
    check(b"\x7fELF" == program.read_bytes()[:4] and b".debug_info" not in program.read_bytes(), "stripped")


def debian_package(version):
    file = Path(run(SOURCE / "scripts/deb.sh", BUILD, WORK / "out").strip())
    check(file.exists() and version in file.name, "the package", file)
    again = Path(run(SOURCE / "scripts/deb.sh", BUILD, WORK / "again").strip())
    check(file.read_bytes() == again.read_bytes(), "the same build gives the same bytes")
    control = dict(re.findall(r"^([A-Z][\w-]*): (.*)", run("dpkg-deb", "-f", file), re.M))
    check(control["Package"] == "heddle" and control["Version"] == version, "control", control)
    check("libc6" in control["Depends"], "needs the C library", control["Depends"])
    check("libpng" not in control["Depends"] and "libstdc++" not in control["Depends"], "and carries the rest",
          control["Depends"])
    root = WORK / "deb"
    run("dpkg-deb", "-x", file, root)
    names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    for name in ("usr/bin/heddle", "usr/share/man/man1/heddle.1.gz", "usr/share/doc/heddle/copyright",
                 "usr/share/doc/heddle/changelog.gz", "usr/share/doc/heddle/docs/recipes.md",
                 "usr/share/doc/heddle/docs/zh/recipes.md", "usr/share/doc/heddle/recipes/char-gpt.toml",
                 "usr/share/bash-completion/completions/heddle", "usr/share/zsh/vendor-completions/_heddle"):
        check(name in names, "in the package", name, sorted(names)[:40])
    check(not any(name.endswith((".a", ".h", ".cmake")) for name in names), "nothing of the library")
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", file).splitlines()}
    check(owners == {"root/root"}, "owners", owners)
    manual = gzip.decompress((root / "usr/share/man/man1/heddle.1.gz").read_bytes()).decode()
    check(manual.startswith(".TH HEDDLE 1"), "the manual page", manual[:80])
    check_program(root / "usr/bin/heddle", version)
    if shutil.which("lintian"):
        found = run("lintian", "--fail-on", "error,warning", file)
        check(not found.strip(), "lintian", found)


def archive(version):
    file = Path(run(SOURCE / "scripts/tarball.sh", BUILD, WORK / "out").split()[0])
    run("tar", "xzf", file, "-C", WORK)
    root = WORK / file.name.removesuffix(".tar.gz")
    check(version in root.name and (root / "LICENSE").exists(), "the archive", root)
    check_program(root / "bin/heddle", version)


def main():
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "strip", "objdump"))):
        print("skipped: there are no tools for Debian packages (packages dpkg-dev and binutils)")
        return 77
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    version = re.search(r"project\(heddle VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    debian_package(version)
    archive(version)
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
