# Has this host fetch an entry of the cache by itself, and doesn't wait for that. Arguments: the root directory, the entry's name in
# `kept` (as keep.sh made it) and the size of the program that does it. Stdin: that program, then what it is to fetch, which holds
# secrets and is never a word of a command. Answers `started`, or `no python` where it can't be run.
dir=$1/kept/$2
umask 077
cd "$dir" || exit 73
python=
for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
    python=$(command -v "$name") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { cat >/dev/null; echo "no python"; exit 0; }
rm -f failed
head -c "$3" >"fetch.$$" && cat >"plan.$$" || { code=$?; rm -f "fetch.$$" "plan.$$"; exit "$code"; }
alone=$(command -v setsid)
$alone nice -n 10 sh -c 'trap "" HUP; "$1" -I "fetch.$2" "$3" "plan.$2" >log 2>&1; rm -f "fetch.$2" "plan.$2"' sublet \
    "$python" "$$" "$dir" </dev/null >/dev/null 2>&1 &
echo started
