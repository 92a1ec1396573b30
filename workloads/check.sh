#!/bin/sh
# Says, before anything is installed, what this machine lacks to build Noisebook, all of it in one
# go, each with what mends it. The Makefile calls it in the repository's root.
#   check.sh [environment]   environment: .venv is still to be made
# PYTHON, CC and OPENMP come by the environment, and GOAL: what make was asked for.
set -u
PYTHON=${PYTHON:-python3} CC=${CC:-cc} OPENMP=${OPENMP:--fopenmp} GOAL=${GOAL:-paper}
MEGABYTES=1500 # .venv takes 1 GB; the rest is for pip's temporary files and the C parts
lacks=0 packages=

say() { lacks=1; printf '%s\n' "$@" >&2; }
needs() { say "$1"; packages="$packages $2"; } # what is wrong, the packages that mend it

write() { # one page into a new file
    file=$(LC_ALL=C mktemp "$1/.try.XXXXXX") || return
    LC_ALL=C dd if=/dev/zero of="$file" bs=4096 count=1
    set -- $?
    rm -f "$file"
    return "$1"
}

place() {
    for folder in . build build/bin; do
        [ -e "$folder" ] || continue
        try=$(write "$folder" 2>&1) && continue
        case $try in
        *"Read-only"*) say "The folder $PWD can only be read (a read-only file system)." \
            "  what to do: copy the repository to a place where you may write, and run make there" ;;
        *"No space"* | *"quota exceeded"*) say "The disk is full: $PWD/$folder." \
            "  what to do: make room (df -h . shows how much is left), then the same command goes on" ;;
        *) say "This user ($(id -un)) may not write to $PWD/$folder." \
            "  what to do: sudo chown -R $(id -un) \"$PWD\", or use a copy of the repository" ;;
        esac
        return
    done
}

link() {
    [ ! -L .venv ] || say ".venv is a link: installing would empty the folder behind it, $(readlink .venv)." \
        "  what to do: rm .venv, then the same command installs into a folder of its own"
}

room() {
    free=$(df -Pm . | awk 'NR == 2 {print $4}')
    [ "${free:-$MEGABYTES}" -ge $MEGABYTES ] ||
        say "The environment needs $MEGABYTES MB, and there are $free MB left in $PWD." \
            "  what to do: make room, or use a copy of the repository on a larger disk"
}

python() {
    if ! version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
        [ "$PYTHON" = python3 ] && ! command -v python3 >/dev/null &&
            needs "There is no Python here." "python3 python3-venv python3-dev" && return
        say "'$PYTHON' is no Python that this user can run." \
            "  what to do: name another: make $GOAL PYTHON=/usr/bin/python3"
        return
    fi
    case $version in
    3.11 | 3.12 | 3.13 | 3.14) ;;
    *) say "Noisebook needs Python 3.11 to 3.14 (what requirements.lock is for); '$PYTHON' is $version." \
        "  what to do: name another: make $GOAL PYTHON=python3.12"
       return ;;
    esac
    [ "$1" != environment ] || "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        needs "'$PYTHON' cannot make virtual environments." python3-venv
    header=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')
    [ -e "$header" ] ||
        needs "Python's headers are missing, which the injector is compiled with: $header." python3-dev
}

compiler() {
    if ! command -v "${CC%% *}" >/dev/null; then
        [ "$CC" = cc ] && needs "There is no C compiler 'cc'." "gcc libc6-dev" && return
        say "There is no C compiler '$CC'." "  what to do: name another: make $GOAL CC=gcc"
        return
    fi
    folder=$(mktemp -d) || { say "No file can be made in ${TMPDIR:-/tmp}, where compilers and pip need room."; return; }
    echo '#include <stdio.h>
int main(void) { return 0; }' >"$folder/plain.c"
    echo '#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }' >"$folder/openmp.c"
    if ! $CC -o "$folder/out" "$folder/plain.c" 2>/dev/null; then
        needs "'$CC' cannot build a C program; the C library's headers may be missing." libc6-dev
    elif ! $CC $OPENMP -o "$folder/out" "$folder/openmp.c" 2>/dev/null; then
        say "'$CC' cannot build OpenMP programs, and Noisebook's workloads are OpenMP programs." \
            "  what to do: take gcc (make $GOAL CC=gcc), or install clang's OpenMP (package libomp-dev)"
    fi
    rm -rf "$folder"
}

place
if [ "${1:-}" = environment ]; then
    link
    [ $lacks = 1 ] || room
fi
python "${1:-}"
compiler
[ -z "$packages" ] || say "  what to do, on Debian or Ubuntu: apt-get install$packages"
exit $lacks
