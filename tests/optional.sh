#!/bin/sh
# Installs what the optional tests use; called by .ci/run in the repository's root. Says first
# what that is, and installs only as root on Debian or Ubuntu: others read the command. What cannot be
# had is said in one line, and its tests are skipped with the reason.
# optional.sh packages: only what comes by apt.
# ACCEPT_LICENCE=yes: Intel's SYCL runtime, too (make sycl says its licence).
set -u
PY=${PY:-.venv/bin/python}

# a package a word; of names joined by | the first that there is
WANTED="git g++ clang libclang-rt-dev|libclang-rt-14-dev libomp-dev numactl
  libjemalloc2 libtcmalloc-minimal4t64|libtcmalloc-minimal4 libmimalloc3|libmimalloc2.0
  openmpi-bin libopenmpi-dev chromium|chromium-browser qemu-system-x86 util-linux mmdebstrap
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

known() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >build/apt.log 2>&1; }

choose() {
    list=
    for names in $WANTED; do
        found=
        for name in $(echo "$names" | tr '|' ' '); do
            installed "$name" && found=yes && break
            known "$name" && found=$name && break
        done
        case $found in
        '') echo "There is no package ${names%%|*} here: what needs it is skipped" ;;
        yes) ;;
        *) list="$list $found" ;;
        esac
    done
}

packages() {
    command -v apt-get >/dev/null || { echo "This is no Debian or Ubuntu. The optional tests use: $WANTED"; return; }
    [ "$(id -u)" != 0 ] || apt-get update -qq || echo "The lists of packages are not up to date (see above)"
    ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || { echo "apt has no lists of packages here: sudo apt-get update"; return; }
    choose
    [ -n "$list" ] || { echo "All packages that the optional tests use are installed"; return; }
    if [ "$(id -u)" != 0 ]; then
        echo "Without root nothing is installed. To test more: sudo apt-get install$list"
        return
    fi
    echo "Installing what the optional tests use:$list"
    rm -f build/c-parts # a second compiler may come
    install $list && return
    for name in $list; do # all but those that cannot be had
        install "$name" ||
            echo "$name could not be installed: $(grep -m1 '^E:' build/apt.log || tail -1 build/apt.log)"
    done
}

sycl() {
    if [ -e build/sycl/compiler ]; then
        echo "The SYCL programs are built"
    elif [ "${ACCEPT_LICENCE:-}" != yes ]; then
        echo "Without consent to its licence the SYCL runtime is not installed: make sycl ACCEPT_LICENCE=yes (make sycl shows it)"
    else
        sh workloads/sycl/install.sh >build/sycl.log 2>&1 || echo "The SYCL programs could not be had: $(tail -1 build/sycl.log)"
    fi
}

mpi() {
    if [ -e build/mpi/compiler ]; then
        echo "The MPI programs are built"
    else
        sh workloads/mpi/install.sh >build/mpi.log 2>&1 || echo "The MPI programs could not be had: $(tail -1 build/mpi.log)"
    fi
}

checks() {
    [ -e build/checks/installed ] && cmp -s requirements-checks.lock build/checks/installed && return
    rm -rf build/checks
    "$PY" -m pip install --quiet --disable-pip-version-check --require-hashes --target build/checks \
        -r requirements-checks.lock >build/checks.log 2>&1 && cp requirements-checks.lock build/checks/installed ||
        echo "bandit, cosmic-ray and atheris could not be had: $(tail -1 build/checks.log)"
}

mkdir -p build
packages
[ "${1:-}" != packages ] || exit 0
checks & # most of it is waiting for downloads
mpi &
sycl
wait
[ -n "${NOISEBOOK_OSNOISE_VM:-}" ] || echo "The emulated PC with the osnoise tracer is not part of this repository: NOISEBOOK_OSNOISE_VM names it"
