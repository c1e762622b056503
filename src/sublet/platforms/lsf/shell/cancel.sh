# LSF's part of cancel.sh. Jobs are selected by name, which is never reused. A running job notices its cancellation by
# itself and records its end; a second request after half a minute kills it.

cancel_job() {
    which=-p
    [ $(($(date +%s) - $(stat -c %Y cancel))) -lt 30 ] || which=
    jobs=$(bjobs $which -noheader -o jobid -J "$key" 2>/dev/null | sort -u)
    [ -n "$jobs" ] || return 0
    words=$(bkill $jobs 2>&1) && return
    case $words in *"already finished"* | *"No matching"* | *"not found"*) return 0 ;; esac
    printf '%s\n' "$words" >&2
    return 1
}

