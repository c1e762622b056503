# PBS's piece of cancel.sh. Jobs are chosen by their name, which is never given again. What runs sees by itself that it is cancelled,
# and tells of its end; whoever asks again half a minute later wants it gone.

cancel_job() {
    states=HQTW
    [ $(($(date +%s) - $(stat -c %Y cancel))) -lt 30 ] || states=${states}BERSU
    jobs=$(qselect -N "s-$key" -s "$states") || return
    [ -n "$jobs" ] || return 0
    words=$(qdel $jobs 2>&1) && return
    case $words in *"has finished"* | *"Unknown Job"*) return 0 ;; esac
    printf '%s\n' "$words" >&2
    return 1
}

