# Bare `make` prints what there is. CI runs `make test` and nothing else.

BIN := .venv/bin
PYTHON_READY := .venv/.ready
JARS_READY := .cache/jars/.ready
DOCS_READY := .cache/docs/.ready
SOURCES := spark dags tests tools
# Two sessions side by side: one alone leaves half of two cores idle.
SIDE_BY_SIDE := -n 2 --dist worksteal
# Three where some wait for time limits and for other processes.
OTHER_TESTS := tests/dags tests/fuzz tests/unit tests/histories tests/aws -n 3 --dist worksteal
# What concerns verdicts runs on the embedded engine, three side by side: each waits a sixth of its
# time. Apache Spark runs what is its own, and some of the same again.
OF_EMBEDDED := tests/engines/test_no_jvm.py tests/engines/test_interrupted.py
EMBEDDED_TESTS := $(OF_EMBEDDED) tests/spark --engine embedded -n 3 --dist worksteal
SPARK_TESTS := tests/spark --engine spark -m "(apache_spark or both_engines) and not drill" $(SIDE_BY_SIDE)
# What a file of these sets up is much: one process takes all of it.
FILE_BY_FILE := -n 2 --dist loadfile --no-loadscope-reorder
# What waits within a limit, and mostly waits: the types are checked beside it, and nothing else.
BY_THE_CLOCK := tests/browser tests/faults/test_sick_storage.py
# The longest come first.
LONGEST := tests/engines/test_same_answers.py tests/faults/test_schedules.py
OF_BOTH_ENGINES := $(filter-out $(OF_EMBEDDED),$(wildcard tests/engines/test_*.py))
OF_FAULTS := $(filter-out $(BY_THE_CLOCK),$(wildcard tests/faults/test_*.py))
APART := $(LONGEST) $(filter-out $(LONGEST),tests/cluster $(OF_FAULTS) $(OF_BOTH_ENGINES))
# Spark's workers and Airflow's processes run the python3 that they find.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Or each process, and each of pytest's workers, would compile anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo airflow test by-the-clock check fmt lint types fast test-embedded test-spark test-engines test-dags test-aws test-cluster test-browser drill fuzz drill-stuck-shard golden mutants delta-tables bench docs lock dist sbom all clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PYTHON_READY) $(JARS_READY) ## everything the project needs, into its own folder (once)
	@:

$(PYTHON_READY): requirements-dev.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh
	@touch $@

$(JARS_READY): jars.lock $(PYTHON_READY)
	@$(BIN)/python -m tools.fetch_jars
	@touch $@

demo: setup ## a stream with planted faults, audited and repaired by Airflow (minutes; ENGINE=spark: on Apache Spark alone)
	@$(if $(ENGINE),SHARDAUDIT_ENGINE='$(ENGINE)') $(BIN)/python -m tools.demo

airflow: setup ## Airflow with our DAGs, until Ctrl-C
	@$(BIN)/python -m tools.local_airflow

test: setup lint ## every test but the drills
	@$(MAKE) --jobs=2 types by-the-clock
	$(BIN)/pytest $(OTHER_TESTS)
	$(BIN)/pytest $(EMBEDDED_TESTS)
	$(BIN)/pytest $(SPARK_TESTS)
	$(BIN)/pytest $(APART) $(FILE_BY_FILE)

by-the-clock: setup
	$(BIN)/pytest $(BY_THE_CLOCK) $(FILE_BY_FILE)

check: ## format, lint, import contracts, types, fast tests, side by side (one minute or two)
	@$(MAKE) --jobs=3 $(if $(filter output-sync,$(.FEATURES)),--output-sync) lint types fast

fmt: setup ## formats the sources
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lint: setup
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	PYTHONPATH=spark:. $(BIN)/lint-imports

types: setup
	$(BIN)/mypy

fast: setup
	$(BIN)/pytest tests/unit tests/spark/test_golden.py --engine embedded $(SIDE_BY_SIDE) \
		--hypothesis-profile fast -m "not slow and not drill" \
		--deselect tests/spark/test_golden.py::test_answers_are_the_same_when_traces_are_kept_in_parquet

test-embedded: setup ## the audit, ingest and watch on the embedded engine
	$(BIN)/pytest $(EMBEDDED_TESTS)

test-spark: setup ## what needs Apache Spark, and some of the golden cases on it
	$(BIN)/pytest $(SPARK_TESTS)

test-engines: setup ## both engines give the same answers
	$(BIN)/pytest tests/engines

test-dags: setup ## the tests that need Airflow
	$(BIN)/pytest tests/dags

test-cluster: setup ## a standalone cluster of Spark whose workers are killed; a fresh Airflow on PostgreSQL (half an hour)
	$(BIN)/pytest -m "drill or not drill" tests/cluster

test-browser: setup ## the page in a real Airflow and the system's Chromium
	$(BIN)/pytest tests/browser

test-aws: setup ## the tests against stand-ins of AWS
	$(BIN)/pytest tests/aws

drill: setup ## kills and failing calls by the hundred: the tables must not notice (hours; SHARDAUDIT_SCHEDULES=5: so many nights)
	$(BIN)/pytest -m drill tests/spark --engine embedded
	$(BIN)/pytest tests/spark -m "drill or not drill"
	$(BIN)/pytest -m drill tests/engines
	SHARDAUDIT_LAKES=100 $(BIN)/pytest tests/engines/test_same_answers.py
	$(BIN)/pytest -m drill tests/dags
	$(BIN)/pytest -m drill tests/aws tests/histories tests/unit
	$(BIN)/pytest -m drill tests/cluster
	SHARDAUDIT_SCHEDULES=$${SHARDAUDIT_SCHEDULES:-200} $(BIN)/pytest tests/faults -m "drill or not drill"

fuzz: setup ## hostile files, lines, configurations, addresses and command lines by the 100,000 (hours; CASES=1000: so many)
	SHARDAUDIT_CASES=$(or $(CASES),100000) $(BIN)/pytest tests/fuzz -m "drill or not drill" $(SIDE_BY_SIDE)

drill-stuck-shard: setup ## the incident replayed: when the watch says what (a few minutes)
	@$(BIN)/python -m tools.drill_stuck_shard

golden: setup ## writes the expected results of the golden cases anew: review the diff
	$(BIN)/python -m tests.golden.rewrite

mutants: setup ## small faults put into the product: which of them no check notices (hours; N=100: so many)
	nice $(BIN)/python -m tests.mutants $(if $(N),--sample $(N))

delta-tables: setup ## writes the Delta tables of the tests anew, by Apache Spark
	$(BIN)/python -m tests.delta_tables.make

bench: setup ## the commands, cold, against what a person would write instead; page and replay (two hours)
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.backfill
	$(BIN)/python -m tests.bench.shapes

docs: setup $(DOCS_READY) ## README and docs/ as a site, with pages of the commands and the tables, in .site/html
	@$(BIN)/python -m tools.docs_site

$(DOCS_READY): docs/requirements.lock $(PYTHON_READY)
	@$(BIN)/python -m venv --clear .cache/docs
	@.cache/docs/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r docs/requirements.lock
	@touch $@

lock: setup ## resolves requirements.lock, requirements-dev.lock, docs/requirements.lock and jars.lock anew
	@sh tools/lock.sh
	@$(BIN)/python -m tools.fetch_jars --lock

dist: setup ## what a release is: sdist, wheel, SBOM and checksums of the last commit, into dist/
	@$(BIN)/python -m tools.release dist

sbom: setup ## what a user runs, packages and jars with their hashes (CycloneDX), into dist/sbom.cdx.json
	@$(BIN)/python -m tools.sbom dist/sbom.cdx.json

all: test drill bench ## every test, drill and measurement (over an hour)

clean: ## removes what can be made again, but .venv and the jars
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .airflow .demo .bench .mutants .site dist spark-warehouse
