# Has this host fetch an entry of the cache by itself, and doesn't wait for that. Arguments: the root directory, the entry's name in
# `kept` (as keep.sh made it), the size of the program that does it, and the tool that it needs beside a shell (nothing: it is in
# Python). Stdin: that program, then what it is to fetch, which holds secrets and is never a word of a command. Answers `started`, or
# `no python` or `no tool` where it can't be run.
dir=$1/kept/$2 size=$3
umask 077
cd "$dir" || exit 73
if [ -n "$4" ]; then
    command -v "$4" >/dev/null || { cat >/dev/null; echo "no tool"; exit 0; }
    set -- sh
else
    find_python || { cat >/dev/null; echo "no python"; exit 0; }
    set -- "$python" -I
fi
rm -f failed came
head -c "$size" >"fetch.$$" && cat >"plan.$$" || { code=$?; rm -f "fetch.$$" "plan.$$"; exit "$code"; }
alone=$(command -v setsid)
$alone nice -n 10 sh -c 'trap "" HUP; dir=$1 id=$2; shift 2; "$@" "fetch.$id" "$dir" "plan.$id" >log 2>&1; rm -f "fetch.$id" "plan.$id"' sublet \
    "$dir" "$$" "$@" </dev/null >/dev/null 2>&1 &
echo started
