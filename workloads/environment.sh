#!/bin/sh
# Makes the environment .venv of what requirements.lock names, by hash. The Makefile calls it in the
# repository's root; PYTHON comes by the environment. Of two at the same time the second waits, and
# has nothing left to do.
mkdir -p build && exec 9>build/.lock || exit
flock -n 9 || { echo "Another make installs the environment; waiting for its end" && flock 9; } || exit
[ ! .venv/installed -nt requirements.lock ] || exit 0
echo "Installing the environment into .venv: 1 to 2 minutes, 1 GB of disk; then the C parts, 20 seconds"
"${PYTHON:-python3}" -m venv --clear .venv || exit
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
    -r requirements.lock || {
    echo "The environment is not installed: pip's own message stands above; the same command tries again"
    exit 1
}
PYTHONWARNINGS=ignore .venv/bin/python -m compileall -qq -j 0 .venv/lib || true # pip has one CPU for it
touch .venv/installed
