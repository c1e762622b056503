# Pauses one session or lets it go on, and says which way: `queued`, `running`, both for the parts of an array, or nothing if it
# is over. Arguments: the root directory, the key, `pause` or `resume`.

cd "$1/sessions/$2" || exit 1
case $3 in pause) verb=hold signal=STOP ;; *) verb=release signal=CONT ;; esac
rows=$(squeue --me --noheader --array --name="$2" --format='%F %K %T') || exit 1 # by its name: numbers are given again
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
    scontrol "$verb" "$waiting" >&2 || exit 1
    echo queued
fi
if [ -n "$running" ]; then
    scancel --full --signal="$signal" $running >&2 || exit 1
    case $verb in hold) : >paused ;; *) rm -f paused ;; esac
    echo running
fi
