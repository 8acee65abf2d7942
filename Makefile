# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
MODELS := smollm2-135m all-MiniLM-L6-v2

.PHONY: help demo test install dev models check unit faults soak bench clean

help:
	@echo "make demo    run the main job on the embedded model, and write a report"
	@echo "make test    format, lint, types, import contracts, tests"
	@echo "make faults  kill a run at every place where something could be lost"
	@echo "make soak    100,000 calls at concurrency 200: memory and the writer"
	@echo "make bench   speed and memory, as ratios"
	@echo "make clean   remove the virtual environment and the demo's results"

# --- set-up: each step is done once, and again when what it rests on changes -------------------------------------

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("auditor needs Python 3.11 or newer; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip==$$(sed -n 's/^pip==//p' constraints.txt)"

# torch first and alone: as somebody's dependency it would come as the largest build there is.
$(VENV)/.torch: $(VENV)/bin/python constraints.txt
	@echo "Installing torch ..."
	@$(PIP) install "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml constraints.txt
	@echo "Installing auditor ..."
	@$(PIP) install -c constraints.txt -e '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@echo "Installing what tests need ..."
	@$(PIP) install -c constraints.txt -e '.[all,dev]'
	@touch $@

install: $(VENV)/.installed
dev: $(VENV)/.dev

models: $(VENV)/.installed
	@for name in $(MODELS); do $(BIN)/auditor models pull $$name || exit 1; done

# Programs that some tests drive; where they cannot be had, those tests say so and are skipped.
.PHONY: system
system:
	@for name in chromium tmux; do \
	  command -v $$name >/dev/null && continue; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing $$name ..."; \
	    (apt-get install -y -q $$name || (apt-get update -q && apt-get install -y -q $$name)) >/dev/null 2>&1 \
	      || echo "$$name could not be installed"; \
	  else echo "$$name is not installed; its tests are skipped"; fi; \
	done

# --- what people run ---------------------------------------------------------------------------------------------

demo: models
	@mkdir -p demo
	@$(BIN)/auditor run examples/quickstart.toml --storage sqlite:///demo/demo.db --report demo/report.html

test: dev models system check unit

check: dev
	@$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q . && echo "ruff: fine"
	@$(BIN)/mypy
	@$(BIN)/lint-imports | tail -n 3

unit: dev
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile

faults: dev
	AUDITOR_ALL_FAULTS=1 $(BIN)/python -m pytest -q tests/e2e/test_killed.py

soak: dev
	$(BIN)/python benchmarks/soak.py

bench: dev models
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) demo build dist *.egg-info
