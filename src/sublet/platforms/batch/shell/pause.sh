# Pauses one session or lets it go on, and says which way: `queued`, `running`, both for the parts of an array, or nothing if it is
# over. Before it stands the scheduler's own piece, with `pause_job`, which does it in the session's directory and says so: what
# waits is held or released (`$verb` is `hold` or `release`), what runs gets the signal `$signal`. `$key` and `$id` are as in
# cancel.sh. Arguments: the root directory, the key, `pause` or `resume`.

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
