# What people type. CMake does the work: see docs/building.md.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
ARGS ?=

.PHONY: help setup tools build run chat test-programs test quick nightly mutants arm64 asan tsan clang conformance bench format check-format tidy check docs site install deb tarball clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

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

# A small chat model from the package index; its licence is shown. ARGS="--lang zh", or other options of `heddle chat`.
chat: setup ## fetch a small chat model, build Heddle and start a conversation
	@scripts/get_chat_model.sh build/chat
	$(call cmake-build,release,heddle_cli)
	@build/release/heddle chat build/chat/SmolLM2-135M-Instruct.Q4_1.gguf --temperature 0.2 --top-p 0.9 $(ARGS)

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

arm64: setup ## build for ARM64 Linux and run a quick subset of the tests in an emulator (docs/building.md)
	@scripts/setup_arm64.sh
	$(call cmake-build,arm64,test_programs)
	@ctest --preset arm64 -j $(JOBS)

asan: tools ## unit and op tests under the address and undefined behaviour sanitizers, by the second compiler
	$(call cmake-build,asan)
	@ctest --preset asan -j $(JOBS)

tsan: setup ## unit and op tests under the thread sanitizer
	$(call cmake-build,tsan)
	@ctest --preset tsan -j $(JOBS)

clang: tools ## build with the second compiler
	$(call cmake-build,clang)

# PYTHON must have the packages that judge; Heddle never needs them. TEMPLATES may be a folder of chat
# templates, such as models/templates of llama.cpp.
PYTHON ?= python3
TEMPLATES ?=
LLAMA_CPP ?=
conformance: build ## compare with other systems (PYTHON=... with their packages, LLAMA_CPP=... a checkout of it, MODEL=... a GGUF file)
	@build/release/heddle data get kjv --to build/data
	@$(PYTHON) tests/conformance/check_tokenizers.py --heddle build/release/heddle build/data/kjv.txt
	@$(PYTHON) tests/conformance/check_pretrained_tokenizers.py --heddle build/release/heddle build/data/kjv.txt
	@$(PYTHON) tests/conformance/check_logs.py --heddle build/release/heddle
	@$(PYTHON) tests/conformance/check_models.py --heddle build/release/heddle
	@$(PYTHON) tests/conformance/check_generation.py --heddle build/release/heddle
	@test -z "$(TEMPLATES)" || $(PYTHON) tests/conformance/check_templates.py --render build/release/render_template $(TEMPLATES)
	@$(PYTHON) tests/conformance/check_export.py --heddle build/release/heddle $(if $(LLAMA_CPP),--llama-simple $(LLAMA_CPP)/build/bin/llama-simple)
	@if [ -n "$(LLAMA_CPP)" ]; then $(PYTHON) tests/conformance/check_gguf.py --heddle build/release/heddle --llama-cpp $(LLAMA_CPP); else echo "LLAMA_CPP=DIR not given: GGUF files of its converter were not compared"; fi
	@if [ -n "$(LLAMA_CPP)" ] && [ -n "$(MODEL)" ]; then $(PYTHON) tests/conformance/check_llama_cpp.py --heddle build/release/heddle --llama $(LLAMA_CPP)/build/bin $(MODEL); else echo "LLAMA_CPP=DIR and MODEL=FILE.gguf not given: no model was compared with llama.cpp's programs"; fi

bench: build ## run the benchmarks
	@shopt -s nullglob; for program in build/release/bench_*; do echo "== $$program"; $$program || exit 1; done

format: tools ## format all sources
	@scripts/format.sh

check-format: tools ## fail when a source is not formatted
	@scripts/format.sh --check

tidy: tools ## clang-tidy over all sources (FILES="..." for some)
	@scripts/tidy.py $(FILES)

check: ## layers, style, and links among documents
	@scripts/check_layers.py
	@scripts/check_style.py
	@scripts/links.py

docs: tools ## pages of the public headers, in build/release/docs/html; a warning is an error
	@cmake --preset release > /dev/null
	@cmake --build build/release --target docs

site: tools ## the documents as a site in English and Chinese, build/site/index.html, tried in a browser
	@scripts/make_site.py
	@tests/pages/site.py build/site || [ $$? -eq 77 ]

install: setup ## build what is installed, and install it to PREFIX (default /usr/local)
	$(call cmake-build,release,heddle_cli)
	@cmake --install build/release --prefix $(PREFIX)

deb: setup ## a Debian package of the program, in build/
	$(call cmake-build,release,heddle_cli)
	@scripts/deb.sh build/release build

tarball: setup ## the program, stripped, with its manual and recipes: a tar.gz for other systems, in build/
	$(call cmake-build,release,heddle_cli)
	@scripts/tarball.sh build/release build

clean: ## remove all builds
	@rm -rf build
