# LSF's part of pause.sh: an owner can stop queued and running jobs alike, by the job's name.

pause_job() {
    states=$(bjobs -noheader -o stat -J "$key" 2>/dev/null | sort -u)
    [ -n "$states" ] || return 0
    case $verb in hold) bstop -J "$key" 0 ;; *) bresume -J "$key" 0 ;; esac >&2 || exit 1
    case $states in *PEND* | *PSUSP*) echo queued ;; esac
    case $states in *RUN* | *USUSP*) echo running ;; esac
}

