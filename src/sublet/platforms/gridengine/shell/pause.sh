# Grid Engine's part of pause.sh: queued jobs are held, running ones suspended, both by the job's name.

pause_job() {
    states=$(qstat -u "$(id -un)" | awk -v id="$id" '$1 == id { print $5 }') || exit 1
    waiting= running=
    for state in $states; do case $state in *q*) waiting=1 ;; *) running=1 ;; esac; done
    if [ -n "$waiting" ]; then
        case $verb in hold) qhold "s-$key" ;; *) qrls "s-$key" ;; esac >&2 || exit 1
        echo queued
    fi
    if [ -n "$running" ]; then
        case $verb in hold) qmod -sj "s-$key" ;; *) qmod -usj "s-$key" ;; esac >&2 || exit 1
        echo running
    fi
}

