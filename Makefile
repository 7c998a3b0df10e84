# Developer commands. Run `make` without arguments to list them.

CARGO ?= cargo
PYTHON ?= python3
ORACLE := target/oracle
STATISTICS := target/statistics
INTEROP := target/interop
INTEROP_NODE := target/interop-node
EDITORS := target/editors
CLUSTER := target/cluster
AGENTDOJO := target/agentdojo
AGENTDOJO_FRAMEWORK := target/agentdojo-framework
VSCODE := editors/vscode
VSIX := target/vscode
VSCODE_EDITOR := target/vscode-editor
INTEROP_MODELS := target/interop-models
REPORT := target/report-tests
WASM := target/wasm
WASM_TARGET := wasm32-unknown-unknown
# The module contains no path of the machine that builds it.
WASM_FLAGS = $(foreach folder,$(wildcard $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src/*) $(CURDIR),--remap-path-prefix=$(folder)=source)
WASM_BINDGEN := $(WASM)/tools/bin/wasm-bindgen
WASM_BINDGEN_VERSION := 0.2.130
STUDIO := studio
STUDIO_TESTS := target/studio-tests
INTEROP_SCHEMAS := target/interop-schemas
OPENAI_DOCUMENT := https://raw.githubusercontent.com/openai/openai-openapi/f85dbe223d40e1a31cba812ab2d755c7e98a92a3/openapi.yaml
GET_OPENAI_DOCUMENT = curl --fail --silent --show-error --location --output $(INTEROP_SCHEMAS)/openai.yaml $(OPENAI_DOCUMENT)
SCHEMA_FIXTURES := target/schema-fixtures
VENV := .venv
NODE := bindings/node
WHEELS := target/wheels
NPM := target/npm
TRY := target/try
BENCH_PYTHON ?= $(PYTHON)
BENCH_PYTHON_DIR := target/bench-python
BENCH_NODE_DIR := target/bench-node
HELLO := $(CURDIR)/examples/hello.prompty
RUSTUP ?= rustup
WINDOWS := x86_64-pc-windows-gnu
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= template syntax rendering front_matter definition directive parse stream openapi

.DEFAULT_GOAL := help
.PHONY: help demo test test-report wasm test-wasm studio test-studio test-node test-python wheels wheel package vscode test-vscode test-vscode-editor interop lint bench bench-memory bench-python bench-node agentdojo agentdojo-sample agentdojo-framework test-cluster fuzz generate schema-fixtures statistics-fixtures docs-images need-cargo need-python need-node need-lint-tools install

help:
	@echo 'make demo           Render and run prompts, and watch an input fail to forge a message'
	@echo 'make test           Run all tests'
	@echo 'make test-python    Run the tests of the Python package'
	@echo 'make test-node      Run the tests of the Node package'
	@echo 'make test-report    Read the reports of tests with other programs, and use the HTML report in Chromium'
	@echo 'make wasm           Build the engine as WebAssembly into $(WASM)/package'
	@echo 'make test-wasm      Compare the WebAssembly module with the native engine on all fixtures'
	@echo 'make studio         Check and build the page of the studio into crates/tympan-studio/assets'
	@echo 'make test-studio    Use the studio and an exported studio in Chromium'
	@echo 'make test-cluster   Prepare tables with a real Spark and a Ray cluster of two nodes; needs Java 17, and downloads 800 MB'
	@echo 'make wheels         Build the Python and Node packages into $(WHEELS), install them and try them'
	@echo 'make vscode         Build the extension for Visual Studio Code into $(VSIX)'
	@echo 'make test-vscode-editor  Use the extension in Visual Studio Code; needs Chromium and Node 20, and downloads 150 MB'
	@echo 'make interop        Test against published schemas, a gateway and a real small model; the first build takes 10 minutes or more'
	@echo 'make agentdojo      Run the benchmark AgentDojo with scripted models, with and without the policy for tools; 10 to 25 minutes'
	@echo 'make agentdojo-framework  Run the same tasks with agent_framework.security'
	@echo 'make install        Install the command `tympan` with all its features'
	@echo 'make lint           Check formatting, clippy, documentation, licences, features and Windows'
	@echo 'make bench          Compare Tympan with its peers, as ratios; writes target/bench.json'
	@echo 'make bench-memory   Compare the memory of a batch of ten million rows with that of one million'
	@echo 'make bench-python   Run the Python benchmarks; BENCH_PYTHON=python3.12, for example, chooses the Python'
	@echo 'make bench-node     Run the Node benchmarks'
	@echo 'make generate       Generate the typed forms of prompt definitions from their schema, and the page of rules'
	@echo 'make schema-fixtures  Generate the schemas in fixtures/schema with pydantic and zod'
	@echo 'make statistics-fixtures  Generate fixtures/statistics with scipy and statsmodels'
	@echo 'make docs-images    Draw the pictures of the documentation from the output of the command'
	@echo 'make fuzz           Run each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'

need-cargo:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
		echo 'Rust is missing. Get it from https://rustup.rs, then run this again.' >&2; exit 1; }
	@$(CARGO) metadata --format-version 1 --no-deps >/dev/null 2>&1 || { \
		echo 'This Rust is too old: Tympan needs 1.95 or newer. Run: rustup update stable' >&2; exit 1; }

need-python:
	@$(PYTHON) -c 'import venv, ensurepip' >/dev/null 2>&1 || { \
		echo 'Python 3 with venv is missing; one test compares with its jinja2.' >&2; \
		echo 'On Debian: apt-get install python3-venv. Elsewhere: https://www.python.org' >&2; exit 1; }

need-node:
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 15) ? 0 : 1)' \
		>/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { \
		echo 'Node 20.15 or newer with npm is missing; one package is for it, and one test talks to a server that is written for it.' >&2; \
		echo 'Get it from https://nodejs.org' >&2; exit 1; }

install: need-cargo
	$(CARGO) install --path crates/tympan-cli --locked

demo: need-cargo
	@echo 'Building the command without its optional features. `make install` installs all of it.'
	@$(CARGO) build --profile demo --package tympan-cli --no-default-features
	@sh examples/demo.sh target/demo/tympan

# One build serves the tests of every language. Building the packages separately would select fewer features of their
# dependencies, and so build those again.
#
# cargo-nextest is faster and has a better summary. Fall back to cargo's own runner if it is not installed.
test: need-cargo $(ORACLE)/ready $(INTEROP)/ready $(INTEROP_NODE)/ready $(EDITORS)/ready
	$(CARGO) build --workspace --all-targets
	@$(MAKE) --no-print-directory test-python test-node test-vscode SHARED=1
	@$(MAKE) --no-print-directory agentdojo-sample
	@$(MAKE) --no-print-directory test-report SHARED=1
	@if $(RUSTUP) target list --installed 2>/dev/null | grep -qx $(WASM_TARGET) || $(RUSTUP) target add $(WASM_TARGET); then \
		$(MAKE) --no-print-directory test-wasm SHARED=1; \
	else \
		echo 'SKIPPED: the engine as WebAssembly, whose target could not be installed (rustup target add $(WASM_TARGET))'; \
	fi
	$(CARGO) test --workspace --doc
	$(ORACLE)/bin/python tests/oracle/jinja2_oracle.py fixtures/jinja
	PYTHON=$(PYTHON) sh schemas/generate.sh --check
	$(PYTHON) -B tests/interop/aimock.py target/debug/tympan $(INTEROP_NODE)
	$(INTEROP)/bin/python -B tests/interop/prompty_files.py target/debug/tympan fixtures examples
	$(INTEROP)/bin/python -B tests/interop/check_formats.py target/debug/tympan fixtures/lint fixtures/cli/prompts examples
	@sh tests/install_program.sh nvim neovim
	$(PYTHON) -B tests/editors/neovim.py target/debug/tympan
	cd tests/editors && TYMPAN="$(CURDIR)/target/debug/tympan" "$(CURDIR)/$(EDITORS)/bin/python" -B -m pytest -q
	@export ROTEL="$$(cat $(INTEROP)/ready)" OPENAPI_PYTHON="$(CURDIR)/$(INTEROP)/bin/python"; \
	export MCP_SERVER="$(CURDIR)/$(INTEROP_NODE)/node_modules/@modelcontextprotocol/server-everything/dist/index.js"; \
	if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo '$(CARGO) nextest run --workspace'; $(CARGO) nextest run --workspace; \
	else \
		echo 'cargo-nextest is not here (cargo install cargo-nextest --locked); using cargo test'; \
		$(CARGO) test --workspace --all-targets; \
	fi

# Read the reports of tests with third-party programs, and use the HTML report in a real browser. The screenshots are in
# $(REPORT)/screenshots.
test-report: need-cargo $(INTEROP)/ready $(REPORT)/ready
	@if [ -z "$(SHARED)" ] || [ ! -f target/debug/examples/report ]; then \
		$(CARGO) build --package tympan-eval --example report; \
	fi
	$(INTEROP)/bin/python -B tests/report/junit.py target/debug/examples/report fixtures/report/run.jsonl fixtures/report/hostile.jsonl
	cp tests/report/*.mjs $(REPORT)
	node $(REPORT)/readers.mjs target/debug/examples/report fixtures/report
	@sh tests/install_program.sh chromium chromium
	node $(REPORT)/page.mjs target/debug/examples/report fixtures/report

# The scripts of the packages would download a browser.
$(REPORT)/ready: tests/report/package.json tests/report/package-lock.json | need-node
	@mkdir -p $(REPORT)
	cp tests/report/package.json tests/report/package-lock.json $(REPORT)
	npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(REPORT)
	@touch $@

# The engine and the rules as WebAssembly.
wasm: need-cargo $(WASM_BINDGEN)
	@$(RUSTUP) target list --installed | grep -qx $(WASM_TARGET) || $(RUSTUP) target add $(WASM_TARGET)
	RUSTFLAGS='$(WASM_FLAGS)' $(CARGO) build --package tympan-wasm --target $(WASM_TARGET) --profile wasm
	$(WASM_BINDGEN) --target web --out-name tympan_wasm --out-dir $(WASM)/package --remove-name-section \
		--remove-producers-section target/$(WASM_TARGET)/wasm/tympan_wasm.wasm

# Its version has to be that of the library in Cargo.lock.
$(WASM_BINDGEN):
	$(CARGO) install wasm-bindgen-cli --version $(WASM_BINDGEN_VERSION) --root $(WASM)/tools

test-wasm: wasm need-node
	@if [ -z "$(SHARED)" ] || [ ! -f target/debug/examples/native ]; then $(CARGO) build --package tympan-wasm --example native; fi
	target/debug/examples/native fixtures examples > $(WASM)/native.jsonl
	PACKAGE=$(WASM)/package NATIVE=$(WASM)/native.jsonl node --test bindings/wasm/test/module.test.mjs

# The page of the studio. Its assets are checked in, so that nobody else needs npm.
studio: wasm $(STUDIO)/node_modules/ready
	mkdir -p $(STUDIO)/src/wasm
	cp $(WASM)/package/* $(STUDIO)/src/wasm
	cd $(STUDIO) && npm run --silent check && npm test --silent && npm run --silent build

$(STUDIO)/node_modules/ready: $(STUDIO)/package.json $(STUDIO)/package-lock.json | need-node
	npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(STUDIO)
	@touch $@

# Use the studio, and an exported one, in a real browser. The screenshots are in $(STUDIO_TESTS)/screenshots. This is not
# part of `make test` yet: the steps that use the server depend on how fast the page is.
test-studio: need-cargo $(STUDIO_TESTS)/ready
	@if [ -z "$(SHARED)" ] || [ ! -f target/debug/tympan ]; then $(CARGO) build --package tympan-cli; fi
	cp tests/studio/*.mjs $(STUDIO_TESTS)
	rm -rf $(STUDIO_TESTS)/export
	target/debug/tympan studio examples --export $(STUDIO_TESTS)/export
	@sh tests/install_program.sh chromium chromium
	node $(STUDIO_TESTS)/export.mjs $(STUDIO_TESTS)/export
	node $(STUDIO_TESTS)/studio.mjs target/debug/tympan examples

# The scripts of the packages would download a browser.
$(STUDIO_TESTS)/ready: tests/studio/package.json tests/studio/package-lock.json | need-node
	@mkdir -p $(STUDIO_TESTS)
	cp tests/studio/package.json tests/studio/package-lock.json $(STUDIO_TESTS)
	npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(STUDIO_TESTS)
	@touch $@

# Build the Python package into the checkout's virtual environment, test it, and compare its type stubs with the real
# module.
test-python: need-cargo $(VENV)/ready
	@if [ -n "$(SHARED)" ] && [ -f target/debug/libtympan_python.so ]; then \
		echo 'Using the native module that was built with the workspace'; \
		"$(VENV)/bin/python" bindings/python/use_built_module.py target/debug/libtympan_python.so; \
	else \
		cd bindings/python && VIRTUAL_ENV="$(CURDIR)/$(VENV)" "$(CURDIR)/$(VENV)/bin/maturin" develop --quiet; \
	fi
	cd bindings/python && "$(CURDIR)/$(VENV)/bin/python" -m pytest -q
	cd bindings/python && "$(CURDIR)/$(VENV)/bin/python" -m mypy.stubtest tympan --allowlist stubtest.allow \
		--mypy-config-file pyproject.toml
	cd bindings/python && "$(CURDIR)/$(VENV)/bin/python" -m mypy --strict python tests
	cd bindings/python && "$(CURDIR)/$(VENV)/bin/pyright" --pythonpath "$(CURDIR)/$(VENV)/bin/python"

$(VENV)/ready: bindings/python/requirements-dev.txt | need-python
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement bindings/python/requirements-dev.txt
	@touch $@

# Use the modules for Spark and Ray with real clusters, and compare with the command. This is not part of `make test`,
# because the clusters take long to install.
test-cluster: need-cargo $(CLUSTER)/ready
	@java -version >/dev/null 2>&1 || { \
		echo 'Java is missing; Spark needs 17 or newer. On Debian: apt-get install openjdk-17-jre-headless' >&2; exit 1; }
	@if [ -z "$(SHARED)" ] || [ ! -f target/debug/libtympan_python.so ]; then $(CARGO) build --workspace --all-targets; fi
	"$(CLUSTER)/bin/python" bindings/python/use_built_module.py target/debug/libtympan_python.so
	cd tests/cluster && "$(CURDIR)/$(CLUSTER)/bin/python" -B -m pytest -q

$(CLUSTER)/ready: tests/cluster/requirements.txt | need-python
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/pip install --quiet --disable-pip-version-check --requirement tests/cluster/requirements.txt
	@touch $@

# Build the Node package (the addon and the TypeScript code) and test both parts.
test-node: need-cargo $(NODE)/node_modules/ready
	cd $(NODE) && CARGO=$(CARGO) node build.mjs $(if $(SHARED),--workspace --all-targets) && npm exec tsc
	npm run --silent --prefix $(NODE) test

$(NODE)/node_modules/ready: $(NODE)/package.json $(NODE)/package-lock.json | need-node
	npm ci --silent --no-fund --no-audit --prefix $(NODE)
	@touch $@

# Build what would be published for this system, and check that it works in an otherwise empty environment.
wheels: wheel package
	@rm -rf $(TRY)
	$(PYTHON) -m venv $(TRY)/python
	$(TRY)/python/bin/pip install --quiet --disable-pip-version-check --no-index $(WHEELS)/tympan-*.whl
	$(TRY)/python/bin/python -c 'import tympan; print(tympan.render(tympan.load("$(HELLO)"), {"name": "Ada"}))'
	@mkdir -p $(TRY)/node
	npm install --silent --no-fund --no-audit --offline --prefix $(TRY)/node $(CURDIR)/$(WHEELS)/tympan-*.tgz
	cd $(TRY)/node && node -p 'const { load, render } = require("tympan"); render(load("$(HELLO)"), { name: "Ada" }).text'
	@ls -l $(WHEELS)

wheel: need-cargo $(VENV)/ready
	@rm -f $(WHEELS)/*.whl
	cd bindings/python && "$(CURDIR)/$(VENV)/bin/maturin" build --quiet --release --out "$(CURDIR)/$(WHEELS)"

# Assemble the package in a separate directory: npm does not pack files outside the package's directory, and the licences
# are outside.
package: need-cargo $(NODE)/node_modules/ready
	@rm -rf $(WHEELS)/*.tgz $(NPM)
	@mkdir -p $(WHEELS) $(NPM)
	cd $(NODE) && CARGO=$(CARGO) node build.mjs --release && npm exec tsc
	cp -R LICENSE-* $(NODE)/package.json $(NODE)/README.md $(NODE)/dist $(NODE)/native $(NPM)
	cd $(NPM) && npm pkg set 'files[]=LICENSE-*' && npm pack --silent --pack-destination "$(CURDIR)/$(WHEELS)"

# Check the extension for Visual Studio Code and test its grammar.
test-vscode: $(VSCODE)/node_modules/ready
	cd $(VSCODE) && npm run --silent check && npm run --silent test

# Package it in a separate directory, because the licences are outside of its own.
vscode: test-vscode
	cd $(VSCODE) && npm run --silent build
	@rm -rf $(VSIX)
	@mkdir -p $(VSIX)/extension
	cd $(VSCODE) && cp -R package.json README.md language-configuration.json .vscodeignore dist syntaxes "$(CURDIR)/$(VSIX)/extension"
	cp LICENSE-* $(VSIX)/extension
	cd $(VSIX)/extension && "$(CURDIR)/$(VSCODE)/node_modules/.bin/vsce" package --no-dependencies \
		--allow-missing-repository --out "$(CURDIR)/$(VSIX)"
	@ls -l $(VSIX)/*.vsix

# Use the extension in a real editor: code-server, which is Visual Studio Code in a browser. The screenshots are in
# $(VSCODE_EDITOR)/screenshots. This is not part of `make test`, because it takes long to install.
test-vscode-editor: need-cargo vscode $(VSCODE_EDITOR)/ready
	$(CARGO) build --package tympan-cli
	cp tests/editors/vscode.mjs $(VSCODE_EDITOR)
	node $(VSCODE_EDITOR)/vscode.mjs target/debug/tympan $(VSIX)/tympan-*.vsix

# The scripts of the packages would download programs that the test does not need. Only native modules are built.
$(VSCODE_EDITOR)/ready: tests/editors/package.json tests/editors/package-lock.json | need-node
	@mkdir -p $(VSCODE_EDITOR)
	cp tests/editors/package.json tests/editors/package-lock.json $(VSCODE_EDITOR)
	npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(VSCODE_EDITOR)
	cd $(VSCODE_EDITOR) && npm rebuild --silent argon2
	cd $(VSCODE_EDITOR)/node_modules/code-server/lib/vscode && \
		npm install --silent --no-fund --no-audit --ignore-scripts --omit=dev && \
		npm rebuild --silent --yes node-pty @vscode/spdlog @parcel/watcher native-watchdog && \
		ln -sfn node_modules node_modules.asar
	cd $(VSCODE_EDITOR)/node_modules/code-server/lib/vscode/extensions && \
		npm install --silent --no-fund --no-audit --ignore-scripts --omit=dev
	@touch $@

$(VSCODE)/node_modules/ready: $(VSCODE)/package.json $(VSCODE)/package-lock.json | need-node
	npm ci --silent --no-fund --no-audit --prefix $(VSCODE)
	@touch $@

$(ORACLE)/ready: tests/oracle/requirements.txt | need-python
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/pip install --quiet --disable-pip-version-check --requirement tests/oracle/requirements.txt
	@touch $@

# A client of language servers.
$(EDITORS)/ready: tests/editors/requirements.txt | need-python
	$(PYTHON) -m venv $(EDITORS)
	$(EDITORS)/bin/pip install --quiet --disable-pip-version-check --requirement tests/editors/requirements.txt
	@touch $@

# Third-party servers. The file contains the path of the collector's executable.
$(INTEROP)/ready: tests/interop/requirements.txt | need-python
	$(PYTHON) -m venv $(INTEROP)
	$(INTEROP)/bin/pip install --quiet --disable-pip-version-check --requirement tests/interop/requirements.txt
	@$(INTEROP)/bin/python tests/interop/find_rotel.py > $@.new && mv $@.new $@

$(INTEROP_NODE)/ready: tests/interop/package.json tests/interop/package-lock.json | need-node
	@mkdir -p $(INTEROP_NODE)
	cp tests/interop/package.json tests/interop/package-lock.json $(INTEROP_NODE)
	npm ci --silent --no-fund --no-audit --prefix $(INTEROP_NODE)
	@touch $@

# The requests in the fixtures, against what the providers publish; then the command, against third-party servers.
interop: need-cargo $(INTEROP_SCHEMAS)/ready $(INTEROP_MODELS)/ready $(INTEROP_NODE)/ready
	@test -f $(INTEROP_SCHEMAS)/openai.yaml || { \
		echo 'SKIPPED: OpenAI'"'"'s OpenAPI document, which could not be downloaded. To get it, run:'; \
		echo '  $(GET_OPENAI_DOCUMENT)'; }
	$(INTEROP_SCHEMAS)/bin/python -B tests/interop/schemas.py fixtures/request $$(ls $(INTEROP_SCHEMAS)/openai.yaml 2>/dev/null)
	$(CARGO) build --package tympan-cli
	$(PYTHON) -B tests/interop/gateway.py target/debug/tympan $(INTEROP_MODELS) $(INTEROP_NODE)
	$(PYTHON) -B tests/interop/real_model.py target/debug/tympan $(INTEROP_MODELS)

# The document is 3 MB. Without it, the types of the packages remain.
$(INTEROP_SCHEMAS)/ready: tests/interop/schemas-requirements.txt | need-python
	$(PYTHON) -m venv $(INTEROP_SCHEMAS)
	$(INTEROP_SCHEMAS)/bin/pip install --quiet --disable-pip-version-check --requirement tests/interop/schemas-requirements.txt
	@$(GET_OPENAI_DOCUMENT) || rm -f $(INTEROP_SCHEMAS)/openai.yaml
	@touch $@

# One of these packages is built from C++, without its image support.
$(INTEROP_MODELS)/ready: tests/interop/models-requirements.txt | need-python
	$(PYTHON) -m venv $(INTEROP_MODELS)
	CMAKE_ARGS='-DLLAVA_BUILD=OFF' $(INTEROP_MODELS)/bin/pip install --quiet --disable-pip-version-check \
		--requirement tests/interop/models-requirements.txt
	@touch $@

# Four suites, 97 user tasks and 949 attacks, each in several configurations.
agentdojo: wheel $(AGENTDOJO)/ready
	$(AGENTDOJO)/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
		$(WHEELS)/tympan-*.whl
	$(AGENTDOJO)/bin/python -B tests/agentdojo/run.py --results $(AGENTDOJO)/results.json

# A part of it, with the package that `make test-python` has built.
agentdojo-sample:
	@if $(MAKE) --no-print-directory $(AGENTDOJO)/ready; then \
		echo '$(AGENTDOJO)/bin/python -B tests/agentdojo/run.py --sample'; \
		PYTHONPATH="$(CURDIR)/bindings/python/python" $(AGENTDOJO)/bin/python -B tests/agentdojo/run.py --sample; \
	else \
		echo 'SKIPPED: AgentDojo, which could not be installed. To try again, run: make agentdojo-sample'; \
	fi

$(AGENTDOJO)/ready: tests/agentdojo/requirements.txt | need-python
	$(PYTHON) -m venv $(AGENTDOJO)
	$(AGENTDOJO)/bin/pip install --quiet --disable-pip-version-check --requirement tests/agentdojo/requirements.txt
	@touch $@

agentdojo-framework: $(AGENTDOJO_FRAMEWORK)/ready
	$(AGENTDOJO_FRAMEWORK)/bin/python -B tests/agentdojo/agent_framework_run.py

$(AGENTDOJO_FRAMEWORK)/ready: tests/agentdojo/requirements-agent-framework.txt | need-python
	$(PYTHON) -m venv $(AGENTDOJO_FRAMEWORK)
	$(AGENTDOJO_FRAMEWORK)/bin/pip install --quiet --disable-pip-version-check \
		--requirement tests/agentdojo/requirements-agent-framework.txt
	@touch $@

lint: need-cargo need-lint-tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) deny check licenses bans sources
	@# Each feature alone, none, and all of them.
	$(CARGO) hack check --quiet --each-feature --no-dev-deps --package tympan-core --package tympan-runtime --package tympan
	@# What needs no C compiler for Windows has to compile for it.
	@if $(RUSTUP) target list --installed 2>/dev/null | grep -qx $(WINDOWS) || $(RUSTUP) target add $(WINDOWS); then \
		echo '$(CARGO) check --target $(WINDOWS)'; \
		$(CARGO) check --quiet --package tympan --no-default-features --features signatures --target $(WINDOWS); \
	else \
		echo 'SKIPPED: the check for Windows (rustup target add $(WINDOWS))'; \
	fi

# The tools of `make lint`, installed if they are missing.
need-lint-tools: need-cargo
	@for tool in deny hack; do \
		$(CARGO) $$tool --version >/dev/null 2>&1 || { \
			echo "$(CARGO) install cargo-$$tool --locked"; $(CARGO) install cargo-$$tool --locked --quiet || exit 1; }; \
	done

generate: need-cargo
	CARGO=$(CARGO) PYTHON=$(PYTHON) sh schemas/generate.sh
	$(CARGO) test --quiet --package tympan-lint --test integration -- --ignored rules_page

# The schemas that other libraries write, and the verdicts of another validator. Afterwards, review the snapshots.
schema-fixtures: $(SCHEMA_FIXTURES)/ready
	$(SCHEMA_FIXTURES)/bin/python -B fixtures/schema/generate.py
	@mkdir -p $(SCHEMA_FIXTURES)/cases
	cp fixtures/schema/generate.mjs $(SCHEMA_FIXTURES)
	node $(SCHEMA_FIXTURES)/generate.mjs
	cp $(SCHEMA_FIXTURES)/cases/zod.json fixtures/schema/cases

$(SCHEMA_FIXTURES)/ready: fixtures/schema/requirements.txt | need-python need-node
	$(PYTHON) -m venv $(SCHEMA_FIXTURES)
	$(SCHEMA_FIXTURES)/bin/pip install --quiet --disable-pip-version-check --requirement fixtures/schema/requirements.txt
	npm install --silent --no-fund --no-audit --no-save --prefix $(SCHEMA_FIXTURES) zod@4
	@touch $@

# The values that statistics have in scipy and statsmodels. The published values are written by hand, and checked here.
statistics-fixtures: $(STATISTICS)/ready
	$(STATISTICS)/bin/python -B tests/oracle/statistics_oracle.py fixtures/statistics

$(STATISTICS)/ready: tests/oracle/statistics-requirements.txt | need-python
	$(PYTHON) -m venv $(STATISTICS)
	$(STATISTICS)/bin/pip install --quiet --disable-pip-version-check --requirement tests/oracle/statistics-requirements.txt
	@touch $@

# `make test` does not compare the pictures with the command. To do so, run: python3 docs/images/make_images.py --check
docs-images: need-cargo
	$(CARGO) build --quiet --package tympan-cli
	$(PYTHON) -B docs/images/make_images.py
	$(PYTHON) -B docs/images/flow_image.py

# One run produces three sets of tables, each comparing peers in one language. Each adds to target/bench.json.
bench: need-cargo
	$(CARGO) bench --manifest-path bench/Cargo.toml
	@$(MAKE) --no-print-directory bench-python bench-node

bench-memory: need-cargo
	$(CARGO) run --release --quiet --manifest-path bench/Cargo.toml --bin tables

bench-python: wheel $(BENCH_PYTHON_DIR)/ready
	$(BENCH_PYTHON_DIR)/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
		$(WHEELS)/tympan-*.whl
	$(BENCH_PYTHON_DIR)/bin/python -B bench/python/bench.py

$(BENCH_PYTHON_DIR)/ready: bench/python/requirements.txt | need-python
	$(BENCH_PYTHON) -m venv --clear $(BENCH_PYTHON_DIR)
	$(BENCH_PYTHON_DIR)/bin/pip install --quiet --disable-pip-version-check --requirement bench/python/requirements.txt
	@touch $@

bench-node: package $(BENCH_NODE_DIR)/ready
	npm install --silent --no-fund --no-audit --no-save --offline --prefix $(BENCH_NODE_DIR) \
		$(CURDIR)/$(WHEELS)/tympan-*.tgz
	cp bench/node/*.mjs $(BENCH_NODE_DIR)
	TYMPAN_ROOT="$(CURDIR)" node $(BENCH_NODE_DIR)/bench.mjs

$(BENCH_NODE_DIR)/ready: bench/node/package.json bench/node/package-lock.json | need-node
	@mkdir -p $(BENCH_NODE_DIR)
	cp bench/node/package.json bench/node/package-lock.json $(BENCH_NODE_DIR)
	npm ci --silent --no-fund --no-audit --prefix $(BENCH_NODE_DIR)
	@touch $@

fuzz: need-cargo
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { \
		echo 'cargo-fuzz is missing. Run: cargo install cargo-fuzz --locked' >&2; exit 1; }
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done
