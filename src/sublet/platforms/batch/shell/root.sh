# Finds or makes the directory below which sessions are kept. Argument: its path, which may be relative to the home
# directory or begin with an environment variable of the person, such as $SCRATCH. Answers with its full path. Exits
# with 77 if others could change its content, or if everyone could replace it.
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
tries=3 # another session's cleanup may remove it at any moment
until mkdir -p -m 700 "$path" && cd "$path"; do # -m 700, as a default access control list can be wider than the umask
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 1
done
path=$(pwd -P) || exit 1
own "$path" || exit
mkdir -p -m 700 "$path/sessions" "$path/incoming" || exit 1
own "$path/sessions" "$path/incoming" "$path/kept" "$path/trash" "$path/t" || exit

# Above it a group may write, because many centres share a project's disk that way, and its members know each other.
at=$path
set -- /
while at=${at%/*} && [ -n "$at" ]; do set -- "$@" "$at"; done
LC_ALL=C ls -ldn "$@" 2>/dev/null | while read -r mode _ _ _ _ _ _ _ name; do
    case $mode in ????????w[!tT]*) echo "everyone can write in $name, which has no sticky bit" >&2; exit 77 ;; esac
done || exit
printf '%s\n' "$path"
