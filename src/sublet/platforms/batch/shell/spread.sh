# Unpacks an archive that is an entry of the cache as the content of another entry. Arguments: the root directory, and
# the names of both in `kept`. Stdin: the program that unpacks. Exits with 65 and a message if it can't or may not be
# unpacked; with 69 if there is no Python.
find_python || { cat >/dev/null; exit 69; }
cd "$1/kept/$3" || exit 73
exec nice -n 10 "$python" -I - "$1/kept/$2/content" "$1/kept/$3/part" claim/beat
