# A script with a timed region: by `lines`, `roi` or `own` times. The truth is bash's $EPOCHREALTIME, read just before.
kind=$1
say() {
    truth=$EPOCHREALTIME
    case $kind in
    lines) [ "$1" = begin ] && echo "Starting the solver" || echo "Solver took long" ;;
    roi) echo "$1" > "$NOISEBOOK_ROI" ;;
    own) echo "$1 $truth" > "$NOISEBOOK_ROI" ;;
    esac
}
sleep 0.01
say begin
begin=$truth
sleep 0.02
say end
sleep 0.01
echo "$begin $truth" >> "$TRUTH"
