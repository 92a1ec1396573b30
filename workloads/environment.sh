#!/bin/sh
# Makes the environment .venv of what requirements.lock names, by hash. The Makefile calls it in the
# repository's root; PYTHON comes by the environment.
echo "Installing the environment into .venv: 1 to 2 minutes, 1 GB of disk; then the C parts, 20 seconds"
"${PYTHON:-python3}" -m venv --clear .venv || exit
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
    -r requirements.lock || {
    echo "The environment is not installed: pip's own message stands above; the same command tries again"
    exit 1
}
PYTHONWARNINGS=ignore .venv/bin/python -m compileall -qq -j 0 .venv/lib || true # pip has one CPU for it
