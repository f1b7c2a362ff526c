# Everything runs in an environment of its own under .venv: only python3 and make are needed beforehand.
#
#   make demo    trains the digits example and shows what was compiled
#   make test    runs the tests            (make test ARGS="-k reduce -x")
#   make lint, make types, make bench, make wheel, make clean

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --quiet --disable-pip-version-check
ARGS ?=

.PHONY: demo test lint types bench wheel clean help
.DELETE_ON_ERROR:

help:
	@sed -n '1,6s/^# \{0,1\}//p' Makefile

demo: $(VENV)/installed-examples
	$(RUN) -m examples.digits $(ARGS)

# Both workers take neighbouring tests, so that what a file prepares is prepared once, and steal from each other at the
# end. Byte code is kept even where the surroundings say otherwise: some hundred tests start an interpreter of their own.
test: $(VENV)/installed-test
	PYTHONDONTWRITEBYTECODE= $(RUN) -m pytest -n 2 --dist worksteal $(ARGS)

lint: $(VENV)/installed-test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/installed-test
	$(RUN) -m mypy $(ARGS)

bench: $(VENV)/installed-bench
	$(RUN) -m benchmarks --page docs/performance.md $(ARGS)

wheel: $(VENV)/installed-wheel
	$(RUN) -m build --wheel --outdir dist .

clean:
	rm -rf $(VENV) dist build output .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp per set of extras, so that a second run installs nothing. The install is editable: what runs is this checkout.
$(VENV)/installed-%: pyproject.toml | $(VENV)/bin/python
	@echo "installing xlapy[$*] into $(VENV) (once)"
	@$(PIP) install --editable '.[$*]'
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "xlapy needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "python3 cannot make environments: install its venv module (Debian: python3-venv)"; exit 1; }
