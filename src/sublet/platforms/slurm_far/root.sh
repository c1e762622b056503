# Finds, and makes, the directory that sessions are kept below. Argument: its path, which may be relative to the home directory
# or begin with a variable of the person's environment, such as $SCRATCH. Answers with its full path.
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
mkdir -p "$path/sessions" "$path/incoming" || exit 1
cd "$path" && pwd -P
