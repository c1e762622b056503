# Pauses one session or lets it go on, and says which way. Arguments: the root directory, the key, `pause` or `resume`.

cd "$1/sessions/$2" || exit 1
what=$3
IFS= read -r id <id || exit 1
case $(squeue --noheader --jobs="$id" --format=%T) in
    PENDING)
        case $what in pause) verb=hold ;; *) verb=release ;; esac
        scontrol "$verb" "$id" || exit 1
        echo queued
        ;;
    RUNNING | STOPPED)
        case $what in pause) signal=STOP ;; *) signal=CONT ;; esac
        scancel --full --signal="$signal" "$id" || exit 1
        case $what in pause) : >paused ;; *) rm -f paused ;; esac
        echo running
        ;;
    *) echo over ;;
esac
