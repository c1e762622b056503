# Pauses one session or lets it go on, and says which way: `queued`, `running`, both for the parts of an array, or nothing if it
# is over. Arguments: the root directory, the key, `pause` or `resume`.

cd "$1/sessions/$2" || exit 1
case $3 in pause) verb=hold signal=STOP ;; *) verb=release signal=CONT ;; esac
id=
[ -r id ] && IFS= read -r id <id
[ -n "$id" ] || id=$(squeue --me --noheader --name="$2" --format=%A)
[ -n "$id" ] || exit 0
states=$(squeue --noheader --jobs="$id" --format=%T 2>&1) || case $states in
    *"Invalid job id"*) exit 0 ;;
    *) printf '%s\n' "$states" >&2; exit 1 ;;
esac
case $states in
    *PENDING*)
        scontrol "$verb" "$id" >&2 || exit 1
        echo queued
        ;;
esac
case $states in
    *RUNNING* | *STOPPED*)
        scancel --full --signal="$signal" "$id" >&2 || exit 1
        case $verb in hold) : >paused ;; *) rm -f paused ;; esac
        echo running
        ;;
esac
