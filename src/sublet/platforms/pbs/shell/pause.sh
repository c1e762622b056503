# PBS's part of pause.sh. Queued jobs are held; only an operator can suspend running ones.

pause_job() {
    waiting=$(qselect -N "s-$key" -s HQW) || exit 1
    running=$(qselect -N "s-$key" -s BRSU) || exit 1
    [ -z "$running" ] || { echo "on PBS only an operator can suspend a job that runs" >&2; exit 1; }
    [ -n "$waiting" ] || return 0
    case $verb in hold) qhold $waiting ;; *) qrls $waiting ;; esac >&2 || exit 1
    echo queued
}

