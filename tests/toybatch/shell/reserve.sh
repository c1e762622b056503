# A reservation is a process that sleeps until its time, and then waits for its session.
reserve_job() {
    [ "$1" = --full ] && { echo "nothing is free then" >&2; return 1; }
    [ "$1" = --when ] && { until [ -e "$2" ]; do sleep 0.05; done; shift 2; }
    setsid sh -c 'sleep "$2"; exec sh "$1/await.sh" "$1"' sh "$dir" "$1" >/dev/null 2>&1 &
    echo "Your job $!.toy has been submitted"
}
read_id() { id=${said#Your job } id=${id%% *}; }
is_unsure() { return 1; }

