# `make demo` and `make test` do everything on a fresh clone: a virtual environment, the installation, the run.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Where somebody's environment has it, every broker and every process of Spark's would compile all modules at each start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test lint fuzz prove bench bench-cluster bench-spark clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -c "import penstock.columnar.encode_kernels, penstock.columnar.record_kernels"  # compiled once, here
	@touch $(STAMP)

lint: setup
	$(BIN)/ruff format --check src tests benchmarks tools proofs examples
	$(BIN)/ruff check src tests benchmarks tools proofs examples
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint
	$(BIN)/python tools/fetch_kafka.py --if-possible
	$(BIN)/python tools/fetch_streams.py --if-possible
	$(BIN)/python tools/fetch_spark_connector.py --if-possible
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long"

demo: setup
	@$(BIN)/python tools/demo.py

bench: setup
	$(BIN)/python tools/fetch_kafka.py
	$(BIN)/python benchmarks/run.py

# Twenty-five minutes: three brokers beside three of Apache Kafka's.
bench-cluster: setup
	$(BIN)/python tools/fetch_kafka.py
	$(BIN)/python benchmarks/cluster.py

# Twenty minutes on a quiet machine: Spark's own connector beside format("penstock").
bench-spark: setup
	$(BIN)/python tools/fetch_kafka.py
	$(BIN)/python tools/fetch_spark_connector.py
	$(BIN)/python benchmarks/spark.py

# SECONDS=600 SEED=7: longer, and again.
fuzz: setup
	$(BIN)/python -m tests.fuzz.run --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

# PARTS="crash adoption" runs those alone; without it, all that this commit has not shown yet (hours).
prove: setup
	$(BIN)/python tools/fetch_kafka.py
	$(BIN)/python tools/fetch_streams.py
	$(BIN)/python tools/fetch_spark_connector.py
	$(BIN)/python tools/fetch_rabbitmq_client.py
	$(BIN)/python -m proofs $(PARTS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache
