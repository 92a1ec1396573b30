#!/bin/sh
# ruff and clang-format for layout, ruff for lint, mypy for types; tests/sizes.py prints the lines of
# code beside the budget. `check.sh format` writes the layout instead. PY: the Python of the environment.
PY=${PY:-.venv/bin/python}
C=$(find benchmarks injector_c simulator_c tests workloads -name '*.[ch]' ! -name '_*')
layout() { "$PY" -c 'from clang_format import clang_format as main; main()' "$@" $C; }
if [ "${1:-}" = format ]; then
    "$PY" -m ruff check --quiet --fix-only .
    "$PY" -m ruff format --quiet . && layout -i
    exit
fi
bad=0
"$PY" -m ruff format --check --quiet . || bad=1
"$PY" -m ruff check --quiet --output-format concise . || bad=1
layout --dry-run -Werror || bad=1
"$PY" -m mypy --no-error-summary || bad=1
"$PY" -m tests.sizes || bad=1
[ $bad = 0 ] || echo "make check: not clean (see above). make format writes the layout; the rest is for a person"
exit $bad
