# Grid Engine's piece of cancel.sh. Jobs are chosen by their name, which is never given again. What runs sees by itself that it is
# cancelled, and tells of its end (job.sh), for qdel kills at once; whoever asks again half a minute later wants it gone.

cancel_job() {
    rows=$(qstat -u "$(id -un)") || return
    running=
    while read -r number _ _ _ state _; do
        [ "$number" = "$id" ] && case $state in *q*) ;; *) running=1 ;; esac
    done <<END
$rows
END
    [ -n "$running" ] && [ $(($(date +%s) - $(stat -c %Y cancel))) -lt 30 ] && return 0
    words=$(qdel "s-$key" 2>&1) && return
    case $words in *"not exist"* | *"already in deletion"*) return 0 ;; esac
    printf '%s\n' "$words" >&2
    return 1
}

