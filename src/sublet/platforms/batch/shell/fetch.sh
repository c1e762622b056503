# Has this host fetch an entry of the cache by itself, and doesn't wait for that. Arguments: the root directory, the entry's name in
# `kept` (as keep.sh made it) and the size of the program that does it. Stdin: that program, then what it is to fetch, which holds
# secrets and is never a word of a command. Answers `started`, or `no python` where it can't be run.
dir=$1/kept/$2
umask 077
cd "$dir" || exit 73
find_python || { cat >/dev/null; echo "no python"; exit 0; }
rm -f failed
head -c "$3" >"fetch.$$" && cat >"plan.$$" || { code=$?; rm -f "fetch.$$" "plan.$$"; exit "$code"; }
alone=$(command -v setsid)
$alone nice -n 10 sh -c 'trap "" HUP; "$1" -I "fetch.$2" "$3" "plan.$2" >log 2>&1; rm -f "fetch.$2" "plan.$2"' sublet \
    "$python" "$$" "$dir" </dev/null >/dev/null 2>&1 &
echo started
