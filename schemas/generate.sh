#!/bin/sh
# Generates the types of prompt definitions from their schema, for Rust, Pydantic v2 and TypeScript.
# With --check, writes nothing and fails if a generated file is out of date.
set -eu
cd "$(dirname "$0")/.."

schema=crates/tympan-core/schemas/prompt-definition.schema.json
python=target/generators/python
node=target/generators/node
python_generator=datamodel-code-generator==0.89.0
node_generator=json-schema-to-typescript@16.0.0

need() {
    command -v "$1" >/dev/null 2>&1 || { echo "$1 is missing: $2" >&2; exit 1; }
}

if [ ! -x "$python/bin/datamodel-codegen" ]; then
    need "${PYTHON:-python3}" 'get Python 3 with venv from https://www.python.org, or python3-venv on Debian'
    "${PYTHON:-python3}" -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check "$python_generator"
fi
if [ ! -x "$node/node_modules/.bin/json2ts" ]; then
    need npm 'get Node 20 or newer from https://nodejs.org'
    mkdir -p "$node"
    npm install --silent --no-fund --no-audit --prefix "$node" "$node_generator"
fi

# The generated models are part of the Python package.
models=bindings/python/python/tympan/_definition_models.py
types=schemas/generated/definition.d.ts
out=target/generators/out
mkdir -p "$out"

"$python/bin/datamodel-codegen" \
    --input "$schema" --input-file-type jsonschema \
    --output "$out/definition_models.py" --output-model-type pydantic_v2.BaseModel \
    --target-python-version 3.10 --no-use-union-operator --use-subclass-enum --use-standard-collections \
    --use-schema-description --use-field-description --field-constraints --disable-timestamp --formatters black isort 2>/dev/null
"$node/node_modules/.bin/json2ts" --input "$schema" --output "$out/definition.d.ts" \
    --bannerComment '// Generated from schemas/prompt-definition.schema.json by schemas/generate.sh. Do not edit.'

if [ "${1:-}" = --check ]; then
    for form in "$models" "$types"; do
        made="$out/$(basename "$form" | sed 's/^_//')"
        cmp -s "$made" "$form" || { echo "$form is stale: run schemas/generate.sh" >&2; exit 1; }
    done
    # The Rust types are checked by a test: crates/tympan-core/tests/integration/generated_types.rs.
else
    cp "$out/definition_models.py" "$models"
    cp "$out/definition.d.ts" "$types"
    UPDATE_GENERATED=1 "${CARGO:-cargo}" test --quiet --package tympan-core --test integration generated_types
fi
