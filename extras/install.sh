#!/bin/sh
# Installs an extra of this folder into the environment, with what its lock file names. PY: the
# Python of the environment.
cd "$(dirname "$0")/.." || exit
PY=${PY:-.venv/bin/python}
if [ -z "$1" ] || ! [ -f "extras/$1/pyproject.toml" ]; then
    echo "Which extra? make extra EXTRA=NAME, of:" $(cd extras && ls -d */ | tr -d /)
    exit 2
fi
pip() { "$PY" -m pip install --quiet --disable-pip-version-check --no-deps "$@"; }
[ ! -f "extras/$1/requirements.lock" ] || pip --require-hashes -r "extras/$1/requirements.lock" || exit
pip --no-build-isolation -e "extras/$1" && echo "Installed: make paper runs its notebook, if it has one"
