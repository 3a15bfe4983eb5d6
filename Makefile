# Both commands do everything from a fresh clone: virtual environment, install, run.
#   make test        lint, types, import directions, tests (under 12 minutes on two cores)
#   make demo        the quick tour: train a small character model on Python's own library
#   make format      Python and C++ in the house style
#   make browser     the browser that the tests of pages want (Debian's chromium); they are skipped without one
#   make test-slow   the exhaustive checks
#   make docs        the documentation site, into site/: runs the lessons, draws the gallery (make -j2 docs: two at a time)
#   make soak        a service under a mix of requests for an hour: nothing may fail, nothing grow (SECONDS=300: five minutes)
#   make sanitize    the kernels' tests on a build that watches every access to memory (GCC)
#   make sanitize-threads  the engine's, encoder's and decoder's tests on a build that watches what threads share (GCC)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

SANITIZED := build/sanitize
libraries = $(foreach library,$(1),$(shell $(CXX) -print-file-name=$(library)))

DOCUMENTED := $(VENV)/.documented
MADE := build/docs
LESSONS := $(patsubst docs/lessons/%.py,$(MADE)/lessons/%.md,$(wildcard docs/lessons/*.py))
SOURCES := $(shell find elman recipes -name '*.py' -o -name '*.toml')

.PHONY: test browser demo docs test-slow soak sanitize sanitize-threads lint format clean
.DEFAULT_GOAL := test

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror csrc/*.cpp csrc/*.hpp
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v npx > /dev/null; then npx --yes --package typescript@7.0.2 tsc -p elman/serve/studio; \
	else echo "there is no npx: the types of the Studio are not checked"; fi

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/clang-format -i csrc/*.cpp csrc/*.hpp

test: lint
	$(BIN)/python -m pytest -n 2 -m 'not slow'

browser:
	apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y chromium fonts-dejavu-core

test-slow: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt 'ray[serve]'
	$(BIN)/python -m pytest -m slow

SECONDS ?= 3600
soak: $(INSTALLED)
	$(BIN)/python benchmarks/soak.py $(SECONDS)

# Beside the installed kernels, not in their place. Python itself is not built with the sanitizers, so they come first.
sanitize: $(INSTALLED)
	CXX=$(CXX) $(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SANITIZED) \
	    --config-settings build-dir=$(SANITIZED)/objects --config-settings cmake.define.ELMAN_SANITIZE=address .
	LD_PRELOAD='$(call libraries,libasan.so libubsan.so libstdc++.so)' ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    ELMAN_TEST_KERNELS=$(SANITIZED)/elman $(BIN)/python -m pytest -p tests.built_kernels -m 'not slow' \
	    tests/test_kernels.py tests/test_native_entries.py tests/nn/fast/test_compiled.py tests/nn/fast/test_compiled_in_torch.py tests/nn/fast/test_attention.py \
	    tests/nn/fast/test_shared.py tests/nn/test_vectors.py tests/nn/test_softmax.py tests/nn/test_crf.py tests/runtime tests/decode/test_candidates.py

# On the kernels' own threads: a sanitizer that does not know what happens inside OpenMP would take its waiting for none.
sanitize-threads: $(INSTALLED)
	CXX=$(CXX) $(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SANITIZED)-threads \
	    --config-settings build-dir=$(SANITIZED)-threads/objects --config-settings cmake.define.ELMAN_SANITIZE=thread .
	LD_PRELOAD='$(call libraries,libtsan.so libstdc++.so)' ELMAN_OWN_THREADS=1 OMP_NUM_THREADS=2 \
	    TSAN_OPTIONS=ignore_noninstrumented_modules=1 ELMAN_TEST_KERNELS=$(SANITIZED)-threads/elman \
	    $(BIN)/python -m pytest -p tests.built_kernels -m 'not slow' tests/runtime

$(DOCUMENTED): pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(MADE)/lessons/%.md: docs/lessons/%.py docs/tools/lesson.py $(SOURCES) | $(DOCUMENTED)
	OMP_NUM_THREADS=1 $(BIN)/python docs/tools/lesson.py $< --out $(@D)

$(MADE)/gallery.md: docs/tools/gallery.py docs/tools/gallery.toml $(SOURCES) | $(DOCUMENTED)
	OMP_NUM_THREADS=1 $(BIN)/python docs/tools/gallery.py --out $(@D)

# Last, and one after the other: what runs beside a benchmark slows it down.
$(MADE)/benchmarks/decoding.json: $(SOURCES) | $(LESSONS) $(MADE)/gallery.md
	mkdir -p $(@D)
	for name in layers streaming prediction vectors decoding; do $(BIN)/elman bench $$name --quick --json $(@D)/$$name.json || exit 1; done

docs: $(DOCUMENTED) $(LESSONS) $(MADE)/gallery.md $(MADE)/benchmarks/decoding.json
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the site is in site/: open site/index.html"

demo: $(INSTALLED)
	$(BIN)/elman demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
