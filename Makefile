# Two commands on a fresh machine: `make demo` and `make test`. Needs Python 3.11 or newer and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all lint lint-code schema test-models test-ray encoder confidence quality \
  ablation bench fuzz soak clean

demo: $(VENV)/.installed
	@$(BIN)/kb index
	@echo
	@$(BIN)/kb ask -f benchmarks/samples/nccl-shm.log

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "not slow"

# Ray and the models have targets of their own: what they need is large.
test-all: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --ignore tests/models --ignore tests/ray

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

test-models: $(VENV)/.models
	$(BIN)/python -m pytest tests/models

test-ray: $(VENV)/.ray
	$(BIN)/python -m pytest tests/ray

encoder: $(VENV)/.models
	$(BIN)/python -m benchmarks.train_encoder build/encoder
	$(BIN)/python -m benchmarks.export_encoder index/model --trained build/encoder

confidence: $(VENV)/.models
	@mkdir -p build
	$(BIN)/python -m benchmarks.fit_confidence benchmarks/reports/*.jsonl > build/confidence.toml
	mv build/confidence.toml kb/diagnosis/confidence.toml

quality: $(VENV)/.test
	$(BIN)/python -m benchmarks.quality

ablation: $(VENV)/.models
	$(BIN)/python -m benchmarks.ablation

# Seconds of each of the three targets; what breaks one is left in build/.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.fuzz
	mkdir -p build/fuzz/record build/fuzz/evidence build/fuzz/log
	for target in record evidence log; do \
	  $(BIN)/python -m fuzz $$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 -max_len=16000 \
	    -verbosity=0 -artifact_prefix=build/fuzz/$$target- build/fuzz/$$target \
	    tests/fuzz_corpus/$$target incidents/nccl benchmarks/samples || exit 1; \
	done

SOAK_SECONDS ?= 3600
soak: $(VENV)/.installed
	$(BIN)/python -m benchmarks.soak $(SOAK_SECONDS)

bench: $(VENV)/.models
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.tiers

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# What the project needs is installed first, so that its build hook finds it and nothing is
# installed twice.
EDITABLE := $(PIP) --no-build-isolation -e

$(VENV)/requirements.txt: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*project["build-system"]["requires"], *project["project"]["dependencies"], sep="\n")' > $@

$(VENV)/.installed: $(VENV)/requirements.txt constraints.txt
	$(PIP) -r $< editables
	$(EDITABLE) .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(EDITABLE) '.[test]'
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed
	$(EDITABLE) '.[fuzz]'
	@touch $@

$(VENV)/.ray: $(VENV)/.test
	$(EDITABLE) '.[ray,test]'
	@touch $@

$(VENV)/.models: $(VENV)/.test
	$(EDITABLE) '.[models,test]'
	@touch $@
