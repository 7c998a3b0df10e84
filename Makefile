# The front door. `make` alone says what there is.

CARGO ?= cargo
PYTHON ?= python3
ORACLE := target/oracle
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= template front_matter definition directive parse

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench fuzz generate need-cargo need-python

help:
	@echo 'make demo    render a prompt, and watch an input fail to forge a message'
	@echo 'make test    all tests'
	@echo 'make lint    formatting, clippy, licences'
	@echo 'make bench   Tympan beside its peers, as ratios; writes target/bench.json'
	@echo 'make generate  the typed forms of prompt definitions, from their schema'
	@echo 'make fuzz    each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'

need-cargo:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
		echo 'Rust is missing. Get it from https://rustup.rs, then run this again.' >&2; exit 1; }
	@$(CARGO) metadata --format-version 1 --no-deps >/dev/null 2>&1 || { \
		echo 'This Rust is too old: Tympan needs 1.95 or newer. Run: rustup update stable' >&2; exit 1; }

need-python:
	@$(PYTHON) -c 'import venv, ensurepip' >/dev/null 2>&1 || { \
		echo 'Python 3 with venv is missing; one test compares with its jinja2.' >&2; \
		echo 'On Debian: apt-get install python3-venv. Elsewhere: https://www.python.org' >&2; exit 1; }

demo: need-cargo
	@$(CARGO) build --quiet --package tympan-cli
	@sh examples/demo.sh target/debug/tympan

# cargo-nextest is faster and has the better summary; where it is not, cargo's own runner does.
test: need-cargo $(ORACLE)/ready
	$(CARGO) test --workspace --doc
	$(ORACLE)/bin/python tests/oracle/jinja2_oracle.py fixtures/jinja
	PYTHON=$(PYTHON) sh schemas/generate.sh --check
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo '$(CARGO) nextest run --workspace'; $(CARGO) nextest run --workspace; \
	else \
		echo 'cargo-nextest is not here (cargo install cargo-nextest --locked); using cargo test'; \
		$(CARGO) test --workspace --all-targets; \
	fi

$(ORACLE)/ready: tests/oracle/requirements.txt | need-python
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/pip install --quiet --disable-pip-version-check --requirement tests/oracle/requirements.txt
	@touch $@

lint: need-cargo
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --workspace --no-deps --quiet
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny check licenses bans sources; \
	else \
		echo 'cargo-deny is not here, so licences were not checked (cargo install cargo-deny --locked)'; \
	fi

generate: need-cargo
	CARGO=$(CARGO) PYTHON=$(PYTHON) sh schemas/generate.sh

bench: need-cargo
	$(CARGO) bench --manifest-path bench/Cargo.toml

fuzz: need-cargo
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { \
		echo 'cargo-fuzz is missing. Run: cargo install cargo-fuzz --locked' >&2; exit 1; }
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done
