#!/bin/sh
# Installs Open MPI's wheel and mpi4py into build/mpi/runtime and builds the MPI programs into build/bin/mpi; called by `make mpi`, in the repository's root.
#   install.sh         MPICC=/path/of/mpicc: nothing is installed; the programs are built by that MPI
#   install.sh again   builds anew what was built before; nothing if there was nothing
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL
PY=${PY:-.venv/bin/python}
FOLDER=${FOLDER:-build/mpi} BIN=${BIN:-build/bin/mpi} # relative: make takes no blank in a name, and the path to here may hold one
RUNTIME=$FOLDER/runtime INSTALLED=$FOLDER/runtime/installed COMPILER=$FOLDER/compiler

fail() { printf '%s\n' "$@" >&2; exit 1; }

find_compiler() {
    OURS=
    if [ -z "${MPICC:-}" ]; then
        MPICC=$PWD/$RUNTIME/bin/mpicc OURS=yes
    else
        given=$MPICC
        MPICC=$(command -v "$given") || fail "There is no compiler of MPI '$given'." \
            "  what to do: give its path, make mpi MPICC=/path/of/mpicc; or leave it out: make mpi installs Open MPI"
    fi
    command -v cc >/dev/null || fail "There is no C compiler (cc)." "  what to do: on Debian or Ubuntu: apt-get install gcc libc6-dev"
}

install_runtime() {
    cmp -s requirements-mpi.lock "$INSTALLED" && return
    [ "$(uname -s)" = Linux ] || fail "Noisebook measures on Linux; this is $(uname -s)."
    rm -rf "$RUNTIME"
    mkdir -p "$FOLDER"
    echo "Installing Open MPI and mpi4py into build/mpi/runtime"
    "$PY" -m venv --without-pip "$RUNTIME"
    "$PY" -m pip --python "$RUNTIME/bin/python" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        -r requirements-mpi.lock || fail "Open MPI was not installed: pip's own message stands above." \
        "  what to do: on a machine without network, or for which there is no wheel, name an installed MPI: make mpi MPICC=mpicc"
    cp requirements-mpi.lock "$INSTALLED"
}

# mpicc.openmpi has mpirun.openmpi beside it; a mpicc somewhere else the mpiexec or mpirun of the PATH.
find_launcher() {
    beside=$(dirname "$MPICC") name=$(basename "$MPICC")
    suffix=${name#mpicc}
    for LAUNCHER in "$beside/mpirun$suffix" "$beside/mpiexec$suffix" "$beside/mpirun" "$beside/mpiexec" \
        "$(command -v mpirun || true)" "$(command -v mpiexec || true)" "$(command -v srun || true)"; do
        [ -n "$LAUNCHER" ] && [ -x "$LAUNCHER" ] && return
    done
    fail "There is no launcher of MPI (mpirun, mpiexec, srun) beside $MPICC or in the PATH." \
        "  what to do: install the MPI's launcher, or take Noisebook's: make mpi"
}

# For nbhelpers/mpi/_installation.py: where compiler and launcher are, and which MPI it is, from its header.
describe() {
    said=$("$MPICC" -E -P -x c - <<END | sed -n '$s/^noisebook: //p' | tr -d '" '
#include <mpi.h>
#if defined(OPEN_MPI)
noisebook: "Open MPI" OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(I_MPI_VERSION)
noisebook: "Intel MPI" I_MPI_VERSION
#elif defined(MVAPICH2_VERSION)
noisebook: "MVAPICH" MVAPICH2_VERSION
#elif defined(MVAPICH_VERSION)
noisebook: "MVAPICH" MVAPICH_VERSION
#elif defined(MPICH_VERSION)
noisebook: "MPICH" MPICH_VERSION
#else
noisebook: "MPI" MPI_VERSION.MPI_SUBVERSION
#endif
END
    )
    [ -n "$said" ] || fail "'$MPICC' does not find mpi.h." "  what to do: install the MPI's development files, or: make mpi"
    kind=$(printf %s "$said" | sed 's/[0-9].*//; s/MPI$/ MPI/; s/^ //')
    [ -z "$OURS" ] || { MPICC=../../mpi/runtime/bin/mpicc LAUNCHER=../../mpi/runtime/bin/mpirun; }
    printf '%s\n' "mpicc=$MPICC" "launcher=$LAUNCHER" "kind=$kind" "version=$(printf %s "$said" | sed 's/^[^0-9]*//')" \
        >"$BIN/.installation"
}

# Root and more ranks than CPUs: Open MPI wants to be told that both are meant; other MPIs pass over its variables.
try_out() {
    for ranks in 2 4; do
        said=$(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
            OMPI_MCA_rmaps_base_oversubscribe=1 "$LAUNCHER" -n $ranks "$BIN/hello" 2>&1) || fail "An MPI program does not run:" \
            "  $LAUNCHER -n $ranks $BIN/hello" "$said"
        case $said in
        *"ranks=$ranks "*verified=yes*) ;;
        *) fail "The launcher $LAUNCHER does not belong to the MPI of $MPICC: $ranks ranks did not find each other." "$said" \
            "  what to do: put the mpirun of that MPI beside its mpicc or first in the PATH; or take Noisebook's own: make mpi" ;;
        esac
    done
}

build() {
    libraries=
    [ -z "$OURS" ] || libraries=../../$RUNTIME/lib
    make --no-print-directory -s -C workloads/mpi BIN="../../$BIN" MPICC="$MPICC" LIBRARIES="$libraries"
    try_out
    describe
}

if [ "${1:-}" = again ]; then
    [ -e "$COMPILER" ] || exit 0
    MPICC=$(cat "$COMPILER")
fi
given=${MPICC:-}
find_compiler
[ -z "$OURS" ] || install_runtime
find_launcher
mkdir -p "$FOLDER" "$BIN"
[ "${1:-}" = again ] || echo "Building the MPI programs with $MPICC"
build
printf '%s\n' "$given" >"$COMPILER"
[ "${1:-}" = again ] || echo "Done: $(ls "$BIN" | tr '\n' ' ') are in $BIN"
