# Two commands on a fresh machine: `make demo` and `make test`. Needs Python 3.11 or newer and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all lint lint-code schema mcp-definitions test-models test-ray encoder acts act-encoder \
  confidence quality ablation bench fuzz soak locks clean

demo: $(VENV)/.installed
	@$(BIN)/kb index
	@echo
	@$(BIN)/kb ask -f benchmarks/samples/nccl-shm.log

# One process more than there are processors: many tests wait for time limits, signals and files.
PYTEST := $(BIN)/python -m pytest -n "$$(($$(nproc) + 1))"

test: $(VENV)/.test
	$(PYTEST) -m "not slow"

# Ray and the models have targets of their own: what they need is large.
test-all: $(VENV)/.test
	$(PYTEST) --durations=25 --ignore tests/models --ignore tests/ray

lint: lint-code
	$(BIN)/kb lint

lint-code: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

schema: $(VENV)/.installed
	@mkdir -p build
	$(BIN)/python -c 'from kb.service.wire import indented, json_schema; \
	  print(indented(json_schema()))' > build/ask.schema.json
	mv build/ask.schema.json docs/ask.schema.json
	$(BIN)/python -c 'from kb.service.reply import reply_schema; \
	  from kb.service.wire import indented; print(indented(reply_schema()))' > build/chat.schema.json
	mv build/chat.schema.json docs/chat.schema.json

# What agents are told of `kb mcp`; needs the extra `serve`.
mcp-definitions: $(VENV)/.test
	@mkdir -p build
	$(BIN)/python -c 'from kb.serve.mcp import definitions; \
	  from kb.service.wire import indented; print(indented(definitions()))' > build/mcp.json
	mv build/mcp.json docs/mcp.json

# Threads of a model that wait for each other, beside other tests, cost more than they give.
test-models: $(VENV)/.models
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --durations=5 tests/models

test-ray: $(VENV)/.ray
	$(BIN)/python -m pytest tests/ray

encoder: $(VENV)/.models
	$(BIN)/python -m benchmarks.train_encoder build/encoder
	$(BIN)/python -m benchmarks.export_encoder index/model --trained build/encoder

# After a change of benchmarks/acts.
acts: $(VENV)/.models
	$(BIN)/python -m benchmarks.train_acts

# Hours on two cores; then `make acts`.
act-encoder: $(VENV)/.models
	$(BIN)/python -m benchmarks.train_act_encoder

confidence: $(VENV)/.models
	@mkdir -p build
	$(BIN)/python -m benchmarks.fit_confidence benchmarks/reports/*.jsonl benchmarks/strangers/fit.jsonl > build/confidence.toml
	mv build/confidence.toml kb/diagnosis/confidence.toml

# Prints the weights of kb/diagnosis/confidence.py.
playbook-weights: $(VENV)/.test
	$(BIN)/python -m benchmarks.fit_playbooks benchmarks/reports/*.jsonl

quality: $(VENV)/.test
	$(BIN)/python -m benchmarks.quality

ablation: $(VENV)/.models
	$(BIN)/python -m benchmarks.ablation

# Seconds of each target; what breaks one is left in build/fuzz.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
fuzz: $(VENV)/.fuzz
	$(BIN)/python -m fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

SOAK_SECONDS ?= 3600
soak: $(VENV)/.installed
	$(BIN)/python -m benchmarks.soak $(SOAK_SECONDS)

bench: $(VENV)/.models
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.backlog

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Whatever comes from the index must have a hash of locks/. What builds packages is installed first,
# so that nothing else is fetched to build one.
LOCKED := --require-hashes --no-deps --no-build-isolation -r
# Most of what only tests need is never imported; Python compiles the rest when it is.
FOR_TESTS := $(PIP) --no-compile

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml locks/build.txt locks/run.txt
	$(PIP) $(LOCKED) locks/build.txt
	$(PIP) $(LOCKED) locks/run.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(VENV)/.installed locks/test.txt
	$(FOR_TESTS) $(LOCKED) locks/test.txt
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed locks/fuzz.txt
	$(FOR_TESTS) $(LOCKED) locks/fuzz.txt
	@touch $@

$(VENV)/.ray: $(VENV)/.test locks/ray.txt
	$(FOR_TESTS) $(LOCKED) locks/ray.txt
	@touch $@

# torch alone has no hash: each kind of GPU has its own build, and not all are in the index.
$(VENV)/.models: $(VENV)/.test locks/models.txt
	$(FOR_TESTS) $(LOCKED) locks/models.txt
	$(FOR_TESTS) $$(grep ^torch== constraints.txt)
	@touch $@

# Write locks/ anew, with the versions of constraints.txt; needs uv. A new version is written there
# first, or is the newest where there is none.
LOCK := uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
  --no-emit-package torch --constraint constraints.txt
EXTRAS := test fuzz ray models
locks: pyproject.toml constraints.txt
	printf '%s\n' editables hatchling setuptools | $(LOCK) - -o locks/build.txt
	$(LOCK) pyproject.toml -o locks/run.txt
	for extra in $(EXTRAS); do $(LOCK) pyproject.toml --extra $$extra -o locks/$$extra.txt || exit 1; done
