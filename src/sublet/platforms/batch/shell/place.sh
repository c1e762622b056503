# Finds a directory that sessions share. Arguments: the root directory, the path of the place, and the name of one
# person's scratch in it, which is created; without a name, the directory must exist. The path may begin with `~/` or an
# environment variable of the account; without a path, scratch is below the root. Answers with the full path. Exits with
# 77 if others could change the scratch.
root=$1 path=$2 name=$3
case $path in
    '$'*)
        variable=${path%%/*} rest=${path#"${path%%/*}"}
        value=$(printenv "${variable#?}") || value=$("${SHELL:-sh}" -lc 'printenv "$0"' "${variable#?}" 2>/dev/null </dev/null | tail -n 1)
        [ -n "$value" ] || { echo "$variable is not set there" >&2; exit 78; }
        path=$value$rest
        ;;
    '~/'*) path=$HOME/${path#??} ;;
esac
[ -n "$path" ] && [ ! -d "$path" ] && { echo "$path is not a directory there" >&2; exit 78; }
if [ -z "$name" ]; then
    cd "$path" 2>/dev/null && [ -r . ] || { echo "$path can't be read there" >&2; exit 78; }
    pwd -P
    exit
fi
umask 077
if [ -n "$path" ]; then
    path=$(cd "$path" 2>/dev/null && pwd -P) || { echo "$path can't be entered there" >&2; exit 78; }
    case $(LC_ALL=C ls -ldn "$path") in ????????w[!tT]*) echo "everyone can write in $path, which has no sticky bit" >&2; exit 77 ;; esac
    above=$path/sublet-$(id -u)
else
    above=$root/places
fi
