#!/bin/sh
# Resolves the dependencies of pyproject.toml anew, by uv in an environment that is thrown away.
# The lock holds versions and hashes, and no address: plain pip installs it from anywhere.
set -eu

uv=$(mktemp -d)
trap 'rm -rf "$uv"' EXIT
.venv/bin/python -m venv "$uv"
"$uv/bin/pip" install -q uv
resolve() { # lock, uv's words
    lock=$1
    shift
    echo "resolving $lock …" >&2
    "$uv/bin/uv" pip compile -q --python-version 3.11 --universal --generate-hashes \
        --no-emit-index-url --no-annotate --no-header "$@" pyproject.toml -o "$lock"
}
resolve requirements-dev.lock --extra dev
# What a user runs, in the same versions.
resolve requirements.lock --extra airflow --extra producer --constraint requirements-dev.lock
resolve docs/requirements.lock --extra docs
