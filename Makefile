PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo

RECENT := import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.11") if sys.version_info < (3, 11) else None

.PHONY: help install demo quick test collect faults mutants bench bench-history paper lint deploy-lock deploy-check times clean

help:
	@echo "make demo   installs what it needs, then topics of the State of the Union addresses"
	@echo "make quick  some of the tests, without lint: two minutes"
	@echo "make test   install, then linting, types, import contract and all tests; the same examples"
	@echo "            each time, others by SEED=7 or SEED=random"
	@echo "make faults the long form of the fault campaigns, about an hour (SEED=, HISTORIES=)"
	@echo "make mutants  mutates the lines that differ from BASE= (main~1), or all lines of PATHS=,"
	@echo "            and lists those that no test notices (OPTIONS='--sample 50')"
	@echo "make bench  this project beside its peers, about two hours (OPTIONS=--quick: minutes)"
	@echo "make bench-history  CPU seconds of cases on commits in turn, each from its own checkout"
	@echo "            (RANGE=0.1.0..main or RANGE='0.1.0 0.2.0 main', OPTIONS='--only Topics')"
	@echo "make paper  the experiments of the paper, 20 minutes (OPTIONS='--divina PATH --quick')"
	@echo "make lint   the checks of make test without the tests"
	@echo "make deploy-lock  the image's dependencies anew, with hashes"
	@echo "make deploy-check the image's installation in a fresh virtual environment, minutes"
	@echo "make times  the seconds of a plan beside those of a real run, on a quiet machine"
	@echo "make clean  remove the virtual environment and caches"

install: $(STAMP)

# the demo needs no tools of the tests: a third of the packages, half of the bytes
$(DEMO): pyproject.toml
	@$(PYTHON) -c '$(RECENT)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(STAMP): pyproject.toml
	@$(PYTHON) -c '$(RECENT)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo,test]'
	@touch $(DEMO) $(STAMP)

demo: $(DEMO)
	$(BIN)/streaming-moments demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/assembled.py mypy
	$(BIN)/python tests/assembled.py lint-imports
	$(BIN)/python tests/long_files.py

# One thread of linear algebra a process, as commands have; and compiled files are kept: collecting
# takes 9 s of a process, and 24 where each compiles all anew.
TESTING := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= SEED=$(SEED)

quick: install
	$(TESTING) $(BIN)/python .ci/quick.py

# Two processes more than there are cores, eight at most: tests wait for workers and servers, so
# that with one more two cores were idle for a third of the time.
PROCESSES := import os; print(min((os.cpu_count() or 1) + 2, 8))
test: install
	+@$(MAKE) --no-print-directory --jobs=2 lint collect
	$(TESTING) $(BIN)/python -m pytest --dist=worksteal \
	  --numprocesses=$$($(BIN)/python -c '$(PROCESSES)')

# Compiles tests and kernels once, beside the checks of types: else each process of a first run does.
collect: install
	@$(BIN)/streaming-moments kernels >/dev/null
	@told=$$($(TESTING) $(BIN)/python -m pytest --collect-only 2>&1) || { echo "$$told"; exit 1; }

faults: install
	@seed=$${SEED:-$$(date +%s)}; echo "seed $$seed: make faults SEED=$$seed repeats it"; \
	SEED=$$seed STREAMING_MOMENTS_FAULTS=long STREAMING_MOMENTS_HISTORIES=$${HISTORIES:-300} \
	$(BIN)/python -m pytest tests/faults tests/storage/operations/test_random_histories.py tests/storage/operations/test_growth.py

mutants: install
	$(BIN)/python tests/mutants $(if $(PATHS),$(PATHS),--since $(or $(BASE),main~1)) $(OPTIONS)

bench: install
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python tests/benchmarks $(OPTIONS)

bench-history: install
	$(BIN)/python -m pip install --quiet --editable '.[history]'
	$(BIN)/python tests/benchmarks/over_time $(or $(RANGE),0.1.0..main) $(OPTIONS)

paper: install
	$(BIN)/python -m pip install --quiet --editable '.[paper]'
	$(BIN)/python tests/paper $(OPTIONS)

deploy-lock: install
	$(BIN)/python -m pip install --quiet uv
	cd deploy && UV_CUSTOM_COMPILE_COMMAND="make deploy-lock" ../$(BIN)/uv pip compile --quiet --upgrade \
	  --extra s3 --extra gcs --extra azure --extra serve --generate-hashes --no-emit-index-url --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	  ../pyproject.toml image.in --output-file requirements.lock

deploy-check: install
	STREAMING_MOMENTS_DEPLOY=long $(BIN)/python -m pytest tests/deploy

times: install
	STREAMING_MOMENTS_TIMES=1 $(BIN)/python -m pytest -s tests/pipelines/planning/test_plan.py -k takes_the_time

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
