# What people type. CMake does the work: see docs/building.md.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
ARGS ?=

.PHONY: help setup tools build run test-programs test quick nightly mutants asan tsan clang conformance bench format check-format tidy check docs install clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup:
	@scripts/setup.sh

tools:
	@scripts/setup.sh --tools

# $(call cmake-build,PRESET,TARGETS): configures when needed (ninja reruns CMake by itself later).
define cmake-build
	@test -f build/$(1)/build.ninja || cmake --preset $(1)
	@cmake --build build/$(1) -j $(JOBS) $(addprefix --target ,$(2))
endef

build: setup ## build everything, optimised, in build/release
	$(call cmake-build,release)

run: setup ## build Heddle, train a small model on real text and let it write (ARGS="--set ...")
	$(call cmake-build,release,heddle_cli)
	@build/release/heddle data get kjv
	@scripts/first_run.sh $(ARGS)

# What tests run, without benchmarks and examples, which `make build` and CI build as well.
test-programs: setup
	$(call cmake-build,release,test_programs)

test: test-programs ## build and run all tests but the nightly ones
	@ctest --preset release -j $(JOBS)

quick: test-programs ## build and run the quick tests
	@ctest --preset release -L quick -j $(JOBS)

nightly: test-programs ## build and run the tests that take minutes
	@ctest --preset nightly

mutants: setup ## plant faults into a copy and report those no test notices: hours (ARGS="--count 100", docs/testing.md)
	@scripts/mutate.py --jobs $(JOBS) $(ARGS)

asan: setup ## unit and op tests under the address and undefined behaviour sanitizers
	$(call cmake-build,asan)
	@ctest --preset asan -j $(JOBS)

tsan: setup ## unit and op tests under the thread sanitizer
	$(call cmake-build,tsan)
	@ctest --preset tsan -j $(JOBS)

clang: tools ## build with the second compiler
	$(call cmake-build,clang)

# PYTHON must have the package `tokenizers`; it judges, Heddle never needs it.
PYTHON ?= python3
conformance: build ## compare with other systems (PYTHON=... with their packages)
	@build/release/heddle data get kjv --to build/data
	@$(PYTHON) tests/conformance/check_tokenizers.py --heddle build/release/heddle build/data/kjv.txt
	@$(PYTHON) tests/conformance/check_pretrained_tokenizers.py --heddle build/release/heddle build/data/kjv.txt
	@$(PYTHON) tests/conformance/check_logs.py --heddle build/release/heddle
	@$(PYTHON) tests/conformance/check_models.py --heddle build/release/heddle

bench: build ## run the benchmarks
	@shopt -s nullglob; for program in build/release/bench_*; do echo "== $$program"; $$program || exit 1; done

format: tools ## format all sources
	@scripts/format.sh

check-format: tools ## fail when a source is not formatted
	@scripts/format.sh --check

tidy: tools ## clang-tidy over all sources (FILES="..." for some)
	@scripts/tidy.py $(FILES)

check: ## layers and style
	@scripts/check_layers.py
	@scripts/check_style.py

docs: tools ## pages of the public headers, in build/release/docs/html; a warning is an error
	@cmake --preset release > /dev/null
	@cmake --build build/release --target docs

install: setup ## build what is installed, and install it to PREFIX (default /usr/local)
	$(call cmake-build,release,heddle_cli)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove all builds
	@rm -rf build
