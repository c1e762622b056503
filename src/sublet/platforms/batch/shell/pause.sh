# Pauses or resumes one session, and prints how: `queued`, `running`, both for the parts of an array, or nothing if it
# has ended. The scheduler's own part, with `pause_job`, stands before it; that acts in the session's directory and
# prints the same: queued jobs are held or released (`$verb` is `hold` or `release`), running ones get the signal
# `$signal`. `$key` and `$id` are as in cancel.sh. Arguments: the root directory, the key, `pause` or `resume`.

cd "$1/sessions/$2" || exit 1
key=$2 id=
[ -r id ] && IFS= read -r id <id
case $3 in pause) verb=hold signal=STOP ;; *) verb=release signal=CONT ;; esac
ways=$(pause_job) || exit
case $verb:$ways in
    hold:*running*) : >paused ;;
    *running*) rm -f paused ;;
esac
printf '%s\n' "$ways"
