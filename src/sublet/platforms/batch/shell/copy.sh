# Copies a file or folder of the system into an entry of the cache; links are followed, and anything that is neither a
# file nor a folder is left out. Arguments: the root directory, the entry's name in `kept`, the path, and its name in
# the entry.
umask 077
path=$3
case $path in /*) ;; *) path=$PWD/$path ;; esac
cd "$1/kept/$2" || exit 73
rm -rf part part.file*
while : >claim/beat && sleep 20; do :; done 2>/dev/null >/dev/null </dev/null &
beat=$!
cp -rL -- "$path" "$4"
code=$?
kill "$beat" 2>/dev/null
[ "$code" = 0 ] || exit "$code"
find "$4" ! -type f ! -type d -delete
