# Starts to fetch an entry of the cache on this host, without waiting for the end. Arguments: the root directory, the
# entry's name in `kept` (as keep.sh made it), the size of the program that fetches, and the tool that it needs besides
# a shell (empty: the program is in Python). Stdin: that program, then its plan, which contains secrets and never
# appears in a command's arguments. Answers `started`, or `no python` or `no tool` if it can't be run.
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
