# Everything starts here. `make help` lists the targets.
#
# Nothing but Python (3.11–3.13) and make is needed: uv is used where it is on the PATH, and
# otherwise installed into a folder of its own. Environments come from uv.lock.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BOOTSTRAP := .venv-bootstrap
UV := $(shell command -v uv 2>/dev/null || echo $(BOOTSTRAP)/bin/uv)
RUN := $(UV) run --locked

# Rooms without TensorFlow, clock or files carry 100 % branch coverage.
PURE := */snugly/units.py,*/snugly/errors.py,*/snugly/findings.py,*/snugly/codes/*,*/snugly/graph/*,*/snugly/timeline/*,*/snugly/allocators/*,*/snugly/planning/*,*/snugly/guarding/policy.py

# What covers them. Tracing takes three times as long for code in Python, so it is left out elsewhere.
PURE_TESTS := tests/test_units.py tests/test_errors.py tests/test_findings.py tests/graph tests/timeline tests/allocators tests/planning tests/guarding/test_policy.py

# TensorFlow's versions that `make compat` adds to the one in uv.lock; their Python.
COMPAT_VERSIONS := 2.16 2.18
COMPAT_PYTHON := 3.11

export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(BOOTSTRAP)/bin/uv:
	python3 -m venv $(BOOTSTRAP)
	$(BOOTSTRAP)/bin/python -m pip install --quiet uv

.PHONY: uv
uv: $(if $(filter $(BOOTSTRAP)/%,$(UV)),$(BOOTSTRAP)/bin/uv)

# Predict exits with 1 when a program does not fit, which is what the demo shows: that is success
# here. Any other exit code is a failure. TensorFlow for the Jetson Nano ends at 2.7, whose Keras
# does not turn to XLA by itself.
.PHONY: demo
demo: uv  ## predict an example model on a Jetson Nano
	@$(RUN) --no-default-groups --group cpu snugly predict examples/segmentation.py:build \
	    --train --batch-size 32 --device jetson-nano --runtime tensorflow || test $$? -eq 1

.PHONY: test
test: lint docs pytest  ## everything: lint, types, layers, docs, tests, coverage

.PHONY: lint
lint: uv  ## ruff, pyright, import-linter
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) pyright
	$(RUN) lint-imports

# `worksteal` lets each process begin with a half of its own, so that what a module's tests share is
# made once.
PYTEST := $(RUN) pytest --numprocesses auto --dist worksteal

# Many tests measure memory or race processes, and a neighbour that starts TensorFlow at the wrong
# moment can upset them. So what failed is run once more, one test at a time, and must pass there;
# the first failure stays in the output.
ALONE := $(RUN) pytest --numprocesses 0 --last-failed --last-failed-no-failures none

.PHONY: pytest
pytest: coverage  ## the tests, and 100 % branch coverage of the pure rooms
	$(PYTEST) $(PURE_TESTS:%=--ignore=%) || $(ALONE) $(PURE_TESTS:%=--ignore=%)

# A failing test leaves the coverage check out; both must pass.
.PHONY: coverage
coverage: uv  ## the tests of the pure rooms alone, with the coverage that they carry
	$(PYTEST) --cov --cov-report= $(PURE_TESTS)
	$(RUN) coverage report --include='$(PURE)' --fail-under=100

# Nothing here needs it: without a browser the tests of the page are skipped, and say so.
.PHONY: browser
browser:  ## a Chromium for the tests of the page, where there is none (Debian, as root)
	@for name in chromium chromium-browser google-chrome; do \
	    if command -v $$name > /dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && [ -e /etc/debian_version ]; then \
	    apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends chromium; \
	else \
	    echo 'no browser: install Chromium, for instance with `sudo apt-get install chromium`' >&2; \
	    exit 1; \
	fi

.PHONY: docs
docs: uv  ## build the documentation into docs/_build; a warning is an error
	$(RUN) sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

.PHONY: picture
picture: uv  ## draw the README's picture from the real output of the demo
	$(RUN) python docs/draw_picture.py

.PHONY: accuracy
accuracy: uv  ## predicted against measured; writes the table in the docs (hours; ACCURACY=--quick: half an hour)
	$(RUN) python -m tests.accuracy $(ACCURACY) --output docs/accuracy.md

.PHONY: bench
bench: uv  ## timings, with the peers beside us
	@for script in benchmarks/*.py; do echo "== $$script"; $(RUN) python "$$script"; done

.PHONY: compat
compat: $(COMPAT_VERSIONS:%=compat-%)  ## the TensorFlow-facing tests on older versions

.PHONY: compat-%
compat-%: uv
	$(UV) venv --quiet --allow-existing --python $(COMPAT_PYTHON) .venv-tensorflow-$*
	$(UV) pip install --quiet --python .venv-tensorflow-$*/bin/python \
	    --editable . --group test 'tensorflow-cpu==$*.*'
	.venv-tensorflow-$*/bin/python -m pytest -m tensorflow

.PHONY: format
format: uv  ## let ruff put the code in order
	$(RUN) ruff check --fix-only --quiet .
	$(RUN) ruff format .
