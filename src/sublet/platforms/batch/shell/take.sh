# Puts what another session left where one that is not submitted yet will see it. Arguments: the root directory, the key of that which
# needs it and of that which left it, the place below the session's directory, and `link` or `copy`, as in lay.sh. Stdin: for each file
# a line with its path in the other's working directory, and one with its path below the place; of an empty folder only the latter has any.
from=$1/sessions/$3/work to=$1/incoming/$2/$4 how=$5
case $2$3 in '' | */* | .*) exit 64 ;; esac
umask 077
[ -d "$from" ] || { echo "what it left is not there any more" >&2; exit 65; }
mkdir -p "$to" || exit 73
while IFS= read -r path && IFS= read -r place; do
    [ "$path" ] || { mkdir -p "$to/$place" || exit 73; continue; }
    case $place in */*) mkdir -p "$to/${place%/*}" || exit 73 ;; esac
    [ -f "$from/$path" ] || { echo "$path is not there any more" >&2; exit 65; }
    rm -f -- "$to/$place" # of an earlier try
    [ "$how" = link ] && ln -- "$from/$path" "$to/$place" 2>/dev/null || {
        cp --reflink=auto -- "$from/$path" "$to/$place" && chmod u+w "$to/$place" || exit 73
    }
done
exit 0
