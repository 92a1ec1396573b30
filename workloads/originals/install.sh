#!/bin/sh
# Fetches, checks and builds the programs of the papers into build/bin/originals; called by `make originals`, in the repository's root.
#   ORIGINALS_FROM=/folder   takes /folder/OWNER/NAME.git (git clone --mirror) in place of https://github.com/OWNER/NAME
# Which programs, of which commit, under which licence and built how: programs.txt, beside this file.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CC CXX # a conda environment sets them; the authors' own count
FROM=${ORIGINALS_FROM:-https://github.com}
HERE=$PWD FOLDER=$PWD/build/originals BIN=$PWD/build/bin/originals
export GIT_TERMINAL_PROMPT=0
built="" failed=""

say() { printf '%s\n' "$@"; }
fail() { say "$@" >&2; exit 1; }

# All files and what they hold, as one number.
content() { (cd "$1" && find . -type f ! -path './.git/*' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum | sha256sum | cut -d' ' -f1); }

not_fetched() {
    fail "" "$source was not fetched from $FROM: git's message stands above. Nothing is missing for a study: the notebooks measure our rewrites." \
        "  what to do: where there is a network, git clone --mirror https://github.com/$source FOLDER/$source.git, and so for each source" \
        "              of workloads/originals/programs.txt; bring FOLDER here; make originals ORIGINALS_FROM=/path/of/FOLDER"
}

fetch() {
    place=$FOLDER/${source##*/}-$commit
    [ -e "$place/.fetched" ] && return
    say "Fetching $source at $commit" "  licence: $licence"
    rm -rf "$place"
    mkdir -p "$place"
    git init -q "$place"
    git -C "$place" remote add origin "$FROM/$source"
    [ -z "$only" ] || git -C "$place" sparse-checkout set --no-cone $only
    git -C "$place" fetch -q --depth 1 --filter=blob:none origin "$commit" || not_fetched
    git -C "$place" -c advice.detachedHead=false -c core.autocrlf=false checkout -q "$commit" || not_fetched
    rm -rf "$place/.git"
    found=$(content "$place")
    [ "$found" = "$sha256" ] || fail "$source is not what it was: the SHA-256 of its files is $found, and should be $sha256." \
        "  why it matters: another source is another program" "  what to do: look at $place; tell us, or correct workloads/originals/programs.txt"
    touch "$place/.fetched"
}

build() {
    fetch
    say "Building $program"
    if (cd "$place" && sh -c "$1") > "$FOLDER/$program.log" 2>&1 && [ -x "$place/$binary" ]; then
        mkdir -p "$BIN"
        cp "$place/$binary" "$BIN/$program"
        built="$built $program"
    else
        failed="$failed $program"
        say "  not built: $FOLDER/$program.log says why"
    fi
}

command -v git >/dev/null || fail "There is no git." "  what to do: on Debian or Ubuntu: apt-get install git"
mkdir -p "$FOLDER"
say "None of these programs is a part of Noisebook; each has the licence of its authors, which stays with it in build/originals."
while read -r word rest; do
    case $word in
        source) source=${rest%% *} commit=${rest##* } only="" ;;
        only | sha256 | licence) eval "$word=\$rest" ;;
        program) program=${rest%% *} binary=${rest##* } ;;
        build) build "$rest" </dev/null ;;
    esac
done < "$HERE/workloads/originals/programs.txt"
say "Done:${built:- none} in build/bin/originals. Their descriptions find them: nbhelpers.program(description=\"babelstream\")." \
    " To remove them: rm -r build/originals build/bin/originals"
[ -z "$failed" ] || fail "Not built:$failed"
