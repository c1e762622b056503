# Slurm's part of pause.sh.

pause_job() {
    # By name, which each command looks up itself: numbers are reused, perhaps between one command and the next.
    rows=$(squeue --me --noheader --array --name="$key" --format='%F %K %T') || exit 1
    waiting= running=
    while read -r job part state; do # scancel would retry a signal for a queued part again and again
        [ "$part" = N/A ] || job=${job}_$part
        case $state in
            PENDING) waiting=${waiting:+$waiting,}$job ;;
            RUNNING | STOPPED) running="$running $job" ;;
        esac
    done <<END
$rows
END
    if [ -n "$waiting" ]; then
        scontrol "$verb" jobname="$key" >&2 || exit 1 # running parts continue
        # An older scancel would signal running parts again and again for minutes, because queued parts are one record;
        # naming them by number gives them records of their own. scontrol takes no name along with numbers, so a number
        # could be reused in the moment since squeue, but only if some parts run, and with no worse result than a hold.
        [ -z "$running" ] || scontrol "$verb" "$waiting" >&2 || exit 1
        echo queued
    fi
    if [ -n "$running" ]; then
        [ -n "$waiting" ] || running= # all jobs with its name
        send() { scancel --full --signal="$signal" --name="$key" $running >&2; }
        (export SCANCEL_CTLD=1 && send) 2>/dev/null || send || exit 1 # as in cancel.sh
        echo running
    fi
}

