# Stops sessions. The scheduler's own part, with `cancel_job`, stands before it. Arguments: the root directory, who
# cancels (as JSON), then keys. The first to cancel is recorded. A job that has not begun never will, and its end is
# recorded at once.
#
# `cancel_job` stops the job of `$key` in the session's directory; `$id` is its number, if known. A job that is already
# gone is no error. Jobs are identified by their names, which come from the sessions' keys and are never reused. Where a
# scheduler accepts only numbers, the job's name and `submitted_at` (submitted.sh) tell whether it is still the same
# job.

root=$1 by=$2
shift 2

never() { # ends the job with records in this directory, if it has not begun
    mkdir "$1/ran" 2>/dev/null || return 0
    IFS= read -r first <cancel
    now=$(date +%s)
    printf '{"kind":"cancelled","code":143,"by":%s,"detail":"it had not started","started":%s,"ended":%s,"job":"%s"}' \
        "$first" "$now" "$now" "$id" >"$1/end.part" && mv "$1/end.part" "$1/end.json"
}

code=0
for key; do
    cd "$root/sessions/$key" 2>/dev/null || continue
    [ -e end.json ] || [ -e joined ] && continue
    (set -C && printf '%s\n' "$by" >cancel) 2>/dev/null
    id= parts=
    [ -r id ] && IFS= read -r id <id
    if [ -r parts ] && read -r parts <parts; then
        while [ "$parts" -gt 0 ]; do
            parts=$((parts - 1))
            mkdir -p "part/$parts"
            never "part/$parts"
        done
    else
        never .
    fi
    cancel_job || code=1
done
exit "$code"
