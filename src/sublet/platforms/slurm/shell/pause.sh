# Slurm's piece of pause.sh.

pause_job() {
    # By its name, which each command looks for itself: numbers are given again, perhaps between one command and the next.
    rows=$(squeue --me --noheader --array --name="$key" --format='%F %K %T') || exit 1
    waiting= running=
    while read -r job part state; do # a signal for a part that waits would make scancel try again and again
        [ "$part" = N/A ] || job=${job}_$part
        case $state in
            PENDING) waiting=${waiting:+$waiting,}$job ;;
            RUNNING | STOPPED) running="$running $job" ;;
        esac
    done <<END
$rows
END
    if [ -n "$waiting" ]; then
        scontrol "$verb" jobname="$key" >&2 || exit 1 # parts that run go on
        # An older scancel would signal those that run again and again for minutes, because parts that wait are one record; named by
        # their numbers they get records of their own. scontrol takes no name beside numbers, so only the moment since squeue is
        # left to chance, for parts of which some run, and for nothing worse than a hold.
        [ -z "$running" ] || scontrol "$verb" "$waiting" >&2 || exit 1
        echo queued
    fi
    if [ -n "$running" ]; then
        [ -n "$waiting" ] || running= # all that have its name
        send() { scancel --full --signal="$signal" --name="$key" $running >&2; }
        (export SCANCEL_CTLD=1 && send) 2>/dev/null || send || exit 1 # as in cancel.sh
        echo running
    fi
}

