# Grid Engine's part of pause.sh: queued jobs are held, running ones suspended, both by the job's name. `qrls` releases
# the user's own hold only, and is silent about those of operators and of the system.

held_by_others() {
    for types in ho hs; do qstat -u "$(id -un)" -s $types; done | awk -v id="$id" '$1 == id { held = 1 } END { exit !held }'
}

pause_job() {
    states=$(qstat -u "$(id -un)" | awk -v id="$id" '$1 == id { print $5 }') || exit 1
    waiting= running=
    for state in $states; do case $state in *q*) waiting=1 ;; *) running=1 ;; esac; done
    if [ -n "$waiting" ]; then
        case $verb in hold) qhold "s-$key" ;; *) qrls "s-$key" ;; esac >&2 || exit 1
        if [ "$verb" = release ] && held_by_others; then
            echo "an operator of Grid Engine holds the job, and only an operator can release it" >&2
            exit 1
        fi
        echo queued
    fi
    if [ -n "$running" ]; then
        case $verb in hold) qmod -sj "s-$key" ;; *) qmod -usj "s-$key" ;; esac >&2 || exit 1
        echo running
    fi
}
