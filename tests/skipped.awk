# Adds up pytest's lines "SKIPPED [n] file:line: reason" by reason: what was not tested, and why.
/^SKIPPED \[/ {
    count = substr($2, 2) + 0
    reason = $0
    sub(/^SKIPPED \[[0-9]+\] [^:]*(:[0-9]+)?: /, "", reason)
    counts[reason] += count
    total += count
}
END {
    printf "\n%d tests were skipped:\n", total
    for (reason in counts) printf "%6d  %s\n", counts[reason], reason | "sort -rn"
}
