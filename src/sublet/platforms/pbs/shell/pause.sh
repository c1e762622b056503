# PBS's part of pause.sh. Queued jobs are held; only an operator can suspend running ones, or release those that an
# operator holds: about these `qrls` may be silent.

pause_job() {
    waiting=$(qselect -N "s-$key" -s HQW) || exit 1
    running=$(qselect -N "s-$key" -s BRSU) || exit 1
    [ -z "$running" ] || { echo "on PBS only an operator can suspend or resume a job that runs" >&2; exit 1; }
    [ -n "$waiting" ] || return 0
    case $verb in hold) qhold $waiting ;; *) qrls $waiting ;; esac >&2 || exit 1
    if [ "$verb" = release ] && qstat -f $waiting | grep -q 'Hold_Types = .*[osp]'; then
        echo "an operator of PBS holds the job, and only an operator can release it" >&2
        exit 1
    fi
    echo queued
}

