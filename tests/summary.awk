# The end of a log of pytest, short: how many tests were skipped, by reason ("SKIPPED [n] file:line:
# reason"), then what failed of tests and checks, and with what error; tests that passed when they
# were run again alone are among these.
/^SKIPPED \[/ {
    count = substr($2, 2) + 0
    reason = $0
    sub(/^SKIPPED \[[0-9]+\] [^:]*(:[0-9]+)?: /, "", reason)
    counts[reason] += count
    total += count
}
/^CI: .* was not solved: / { unsolved = $0 "\n" }
/^_+ .* _+$/ { title = $0 }
/^E  / {
    if (title != "") errors = errors title "\n"
    title = ""
    errors = errors $0 "\n"
}
/^[^ ]+:[0-9]+: error: |^[^ ]+:[0-9]+:[0-9]+: [A-Z]+[0-9]+ / { errors = errors $0 "\n" }
/^(FAILED|ERROR) |^make check: not clean/ { failed = failed $0 "\n" }
END {
    printf "\n%d tests were skipped:\n", total
    sort = "sort -rn"
    for (reason in counts) printf "%6d  %s\n", counts[reason], reason | sort
    close(sort)
    printf "%s", unsolved
    if (failed != "") printf "\nFailed at the first try or at all:\n%s%s", errors, failed
}
