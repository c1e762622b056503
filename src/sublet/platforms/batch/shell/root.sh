# Finds, and makes, the directory that sessions are kept below. Argument: its path, which may be relative to the home directory
# or begin with a variable of the person's environment, such as $SCRATCH. Answers with its full path.
# Exits with 77 if others could change what is there, or if everyone could put something else in its place.
path=$1
cd || exit 1
case $path in
    '$'*)
        name=${path%%/*} rest=${path#"${path%%/*}"}
        place=$(printenv "${name#?}") || place=$("${SHELL:-sh}" -lc 'printenv "$0"' "${name#?}" 2>/dev/null </dev/null | tail -n 1)
        [ -d "$place" ] || { echo "$name is not a directory there" >&2; exit 1; }
        path=$place$rest
        ;;
    '~/'*) path=${path#??} ;;
esac
umask 077
tries=3 # it may go with another one's last session just now
until mkdir -p -m 700 "$path" && cd "$path"; do # whatever the default is there: an access control list can be wider than umask
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 1
done
path=$(pwd -P) || exit 1
own "$path" || exit
mkdir -p -m 700 "$path/sessions" "$path/incoming" || exit 1
own "$path/sessions" "$path/incoming" "$path/kept" "$path/trash" "$path/t" || exit

# Above it a group may write, because that is how many centres share a project's disk, and its members are known to each other.
at=$path
set -- /
while at=${at%/*} && [ -n "$at" ]; do set -- "$@" "$at"; done
LC_ALL=C ls -ldn "$@" 2>/dev/null | while read -r mode _ _ _ _ _ _ _ name; do
    case $mode in ????????w[!tT]*) echo "everyone can write in $name, which has no sticky bit" >&2; exit 77 ;; esac
done || exit
printf '%s\n' "$path"
