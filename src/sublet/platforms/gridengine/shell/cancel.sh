# Grid Engine's part of cancel.sh. Jobs are selected by name, which is never reused. A running job notices its
# cancellation by itself and records its end (job.sh), because qdel kills at once; a second request after half a minute
# kills it.

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

