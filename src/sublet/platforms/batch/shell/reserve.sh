# Makes one reservation, once. The scheduler's own part, with `reserve_job`, `read_id` and `is_unsure` (scripts.py),
# stands before it. Arguments: the root directory, the key, the service's own ID, then words for the scheduler. Stdin:
# await.sh. Answers `reserved ID`, or `known`. Exit codes are those of submit.sh.
root=$1 key=$2 owner=$3
shift 3
dir=$root/reservations/$key
trap '' HUP PIPE
umask 077
mkdir -p -m 700 "$root/reservations" || exit 73
own "$root" "$root/reservations" || exit
mkdir "$dir" 2>/dev/null || { echo known; exit 0; }
cd "$dir" && printf '%s\n' "$owner" >owner && cat >await.sh || exit 73
said=$(reserve_job "$@" 2>submit.log </dev/null)
code=$?
if [ "$code" = 0 ]; then
    read_id
    printf '%s\n' "$id" >id
    echo "reserved $id"
    exit 0
fi
cat submit.log >&2
is_unsure && exit 76
case $code in 124 | 137 | 143) exit 76 ;; esac # it was interrupted
cd "$root" && rm -rf "$dir"
exit 75
