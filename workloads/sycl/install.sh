#!/bin/sh
# Installs Intel's SYCL runtime into build/sycl/runtime and builds the SYCL programs into build/bin/sycl; called by `make sycl`, in the repository's root.
#   install.sh         ACCEPT_LICENCE=yes: installs. Not needed where a SYCL compiler (SYCLCXX, else icpx or acpp) builds ahead of time.
#   install.sh again   builds anew what was built before; nothing if there was nothing
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL
PY=${PY:-.venv/bin/python}
FOLDER=build/sycl BIN=build/bin/sycl # relative: make takes no blank in a name, and the path to here may hold one
RUNTIME=$FOLDER/runtime INSTALLED=$FOLDER/runtime/installed COMPILER=$FOLDER/compiler
LICENCE="$RUNTIME/licensing/compiler/Intel Developer Tools EULA"

fail() { printf '%s\n' "$@" >&2; exit 1; }

licence() { cat <<END
The SYCL programs need Intel's SYCL and OpenCL runtime for the CPU. It is no part of Noisebook and not free software:
  what            the packages of requirements-sycl.lock (intel-sycl-rt, intel-opencl-rt and what they need) from your package index
  licence         Intel End User License Agreement for Developer Tools; tbb and tcmlib: Intel Simplified Software License; umf: Apache-2.0
                  with LLVM exception. Free of charge; to install it is to accept it. What you may not do, among others: pass it on.
  where to read   on Intel's site under that name; after the installation in build/sycl/runtime/licensing and .../lib/python*/site-packages/*.dist-info
  size            482 MB to download, 1.5 GB on disk, in build/sycl (to remove it: rm -r build/sycl build/bin/sycl)
END
}

find_compilers() {
    [ -z "$SYCLCXX" ] || command -v "${SYCLCXX%% *}" >/dev/null || fail "There is no SYCL compiler '$SYCLCXX'." \
        "  what to do: give its path: make sycl SYCLCXX=/path/of/icpx; or leave it out: make sycl"
    CXX=${CXX:-$(command -v g++ || command -v clang++ || true)}
    [ -n "$SYCLCXX" ] || [ -n "$CXX" ] || fail "There is no C++ compiler: neither g++ nor clang++." \
        "  what to do: on Debian or Ubuntu: apt-get install g++ libc6-dev"
    [ -n "$SYCLCXX" ] || printf '#include <sys/types.h>\n#include <vector>\n' | "$CXX" -std=c++17 -fsyntax-only -x c++ - 2>/dev/null ||
        fail "'$CXX' does not find the headers of the C++ library, which the runtime reads when it compiles kernels." \
             "  what to do: on Debian or Ubuntu: apt-get install g++ libc6-dev"
}

suits_runtime() {
    case $(pwd -P) in *" "*) fail "Intel's runtime finds no device in a folder whose path holds a blank: $(pwd -P)" \
        "  what to do: move Noisebook to another folder, or name an installed SYCL compiler: make sycl SYCLCXX=acpp" ;; esac
    [ "$(uname -sm)" = "Linux x86_64" ] || fail "Intel's runtime exists for Linux on x86_64 only; this is $(uname -sm)." \
        "  what to do: name an installed SYCL compiler: make sycl SYCLCXX=acpp"
}

install_runtime() {
    rm -rf "$RUNTIME"
    mkdir -p "$FOLDER"
    echo "Installing the SYCL runtime into build/sycl/runtime (482 MB)"
    "$PY" -m venv --without-pip "$RUNTIME"
    "$PY" -m pip --python "$RUNTIME/bin/python" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        -r requirements-sycl.lock
    cp requirements-sycl.lock "$INSTALLED"
}

# The first run of each program fills the cache of compiled kernels; the second, which begins with what the first left, fills the other half.
build() {
    make --no-print-directory -s -C workloads/sycl BIN="../../$BIN" RUNTIME="../../$RUNTIME" CXX="$CXX" SYCLCXX="$SYCLCXX"
    for try in "nbody --bodies 64 --steps 1" "stream --elements 1000 --repeats 1" "minife --nx 4"; do
        for pass in 1 2; do
            said=$("$BIN/"$try 2>&1) || fail "A SYCL program does not run: build/bin/sycl/$try" "$said"
        done
    done
    printf '%s\n' "$SYCLCXX" > "$COMPILER"
}

if [ "${1:-}" = again ]; then
    [ -e "$COMPILER" ] || exit 0
    SYCLCXX=$(cat "$COMPILER")
    find_compilers
    build
    exit 0
fi
SYCLCXX=${SYCLCXX-$(command -v icpx || command -v acpp || true)}
[ -n "$SYCLCXX" ] || suits_runtime
find_compilers
if [ -n "$SYCLCXX" ]; then
    mkdir -p "$FOLDER"
elif ! cmp -s requirements-sycl.lock "$INSTALLED"; then
    licence
    [ "${ACCEPT_LICENCE:-}" = yes ] || fail "" "Nothing was installed. If you accept the licence: make sycl ACCEPT_LICENCE=yes"
    install_runtime
    [ -e "$LICENCE" ] && echo "The licence: $LICENCE"
fi
echo "Building the SYCL programs with ${SYCLCXX:-$CXX}"
build
echo "Done: nbody, stream and minife are in build/bin/sycl"
