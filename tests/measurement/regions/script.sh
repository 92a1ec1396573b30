# A script with a timed region, by `lines`. The truth is bash's $EPOCHREALTIME, read just before.
say() {
    truth=$EPOCHREALTIME
    [ "$1" = begin ] && echo "Starting the solver" || echo "Solver took long"
}
sleep 0.01
say begin
begin=$truth
sleep 0.02
say end
sleep 0.01
echo "$begin $truth" >> "$TRUTH"
