#!/bin/sh
# Makes .venv as requirements-dev.lock says. Quiet: one line per step, one line per error.
set -eu

fail() {
    echo "error: $*" >&2
    exit 1
}

find_python() {
    for python in python3.11 python3.12 python3; do
        if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}

java_version() {
    java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

case "$(java_version)" in
17 | 21) ;;
*) fail 'Java 17 or 21 is needed: apt-get install openjdk-17-jre-headless (Debian), or' \
    'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)" (macOS)' ;;
esac

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    [ -n "$python" ] || fail 'Python 3.11 or 3.12 is needed: apt-get install python3 (Debian), or' \
        'brew install python@3.11 (macOS)'
    "$python" -m venv --clear .venv >/dev/null 2>&1 ||
        fail "$python cannot make .venv: apt-get install python3-venv (Debian)"
fi

mkdir -p .cache
log=.cache/setup.log
echo 'installing the Python packages of requirements-dev.lock (once, some minutes) …' >&2
{
    .venv/bin/python -m pip install --no-deps --require-hashes -r requirements-dev.lock &&
        .venv/bin/python -m pip install --no-deps --no-build-isolation -e . &&
        .venv/bin/python -m compileall -q spark dags tools # Airflow starts 4 times faster with bytecode
} >"$log" 2>&1 || {
    tail -n 3 "$log" >&2
    fail "the packages could not be installed: is the network on? All of pip's words are in $log"
}
