#!/bin/sh
# Resolves the dependencies of pyproject.toml anew, by uv in an environment that is thrown away.
# The lock holds versions and hashes, and no address: plain pip installs it from anywhere.
set -eu

uv=$(mktemp -d)
trap 'rm -rf "$uv"' EXIT
.venv/bin/python -m venv "$uv"
"$uv/bin/pip" install -q uv
resolve() { # extra, lock
    echo "resolving $2 …" >&2
    "$uv/bin/uv" pip compile -q --python-version 3.11 --universal --generate-hashes \
        --no-emit-index-url --no-annotate --no-header --extra "$1" pyproject.toml -o "$2"
}
resolve dev requirements.lock
resolve docs docs/requirements.lock
