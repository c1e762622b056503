# LSF's piece of cancel.sh. Jobs are chosen by their name, which is never given again. What runs sees by itself that it is cancelled,
# and tells of its end; whoever asks again half a minute later wants it gone.

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

