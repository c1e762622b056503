# Puts another session's results into the directory of a session that isn't submitted yet. Arguments: the root
# directory, the key of the session that needs them and of the one that made them, the path below the session's
# directory, and `link` or `copy`, as in lay.sh. Stdin: two lines for each file: its path in the other session's working
# directory, and its path below the target; the first is empty for an empty folder.
from=$1/sessions/$3/work to=$1/incoming/$2/$4 how=$5
case $2$3 in '' | */* | .*) exit 64 ;; esac
umask 077
[ -d "$from" ] || { echo "what it left is not there any more" >&2; exit 65; }
mkdir -p "$to" || exit 73
while IFS= read -r path && IFS= read -r place; do
    [ "$path" ] || { mkdir -p "$to/$place" || exit 73; continue; }
    case $place in */*) mkdir -p "$to/${place%/*}" || exit 73 ;; esac
    [ -f "$from/$path" ] || { echo "$path is not there any more" >&2; exit 65; }
    rm -f -- "$to/$place" # left by an earlier try
    [ "$how" = link ] && ln -- "$from/$path" "$to/$place" 2>/dev/null || {
        cp --reflink=auto -- "$from/$path" "$to/$place" && chmod u+w "$to/$place" || exit 73
    }
done
exit 0
