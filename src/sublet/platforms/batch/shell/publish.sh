# Makes what was received the content of an entry of the cache, if it is complete. Arguments: the root directory, the
# entry's name in `kept`, `file` or `folder`, how many files and bytes it must have (or empty), and for a file its
# digest: the algorithm, such as `sha256`, and the digits. Stdin: for a folder, a line `KIND DIGITS PATH` for each file
# whose digest is known. Exits with 65 and a message if it isn't complete.
umask 077
cd "$1/kept/$2" || exit 73
form=$3 files=$4 bytes=$5 kind=$6 digits=$7
if [ "$form" = file ]; then
    part=part.file.sublet-part
    [ -e "$part" ] || : >"$part" || exit 73
    size=$(stat -c %s "$part")
else
    part=part
    mkdir -p part || exit 73
    size=$(find part -type f -printf '%s\n' | { sum=0 count=0; while read -r one; do sum=$((sum + one)) count=$((count + 1)); done; echo "$sum $count"; })
    [ -z "$files" ] || [ "${size#* }" = "$files" ] || { echo "it has ${size#* } files, and $files were expected" >&2; exit 65; }
    size=${size% *}
fi
[ -z "$bytes" ] || [ "$size" = "$bytes" ] || { rm -rf "$part"; echo "it has $size bytes, and $bytes were expected" >&2; exit 65; }
digest() {
    case $kind in
        adler32) python3 -c 'import sys, zlib
sum = 1
for piece in iter(lambda: sys.stdin.buffer.read(1 << 20), b""): sum = zlib.adler32(piece, sum)
print("%08x" % sum)' ;;
        *) "${kind}sum" ;;
    esac
}
compare() { # arguments: a file, and its name in messages
    found=$(digest <"$1") || { echo "$2checksum can't be checked there: there is no program for $kind" >&2; exit 65; }
    [ "${found%% *}" = "$digits" ] || { rm -f "$1"; echo "$2checksum is $kind:${found%% *}, and $kind:$digits was expected" >&2; exit 65; }
}
if [ -n "$kind" ]; then compare "$part" "its "; fi
[ "$form" = file ] || while IFS= read -r line; do
    kind=${line%% *} line=${line#* }
    digits=${line%% *} path=${line#* }
    compare "part/$path" "$path: its "
done
find "$part" -type f -exec chmod a-w {} +
printf '%s\n' "$size" >size.new && mv size.new size || exit 73
[ -e content ] || mv "$part" content || exit 73
count_content . >seal
rm -rf claim progress transfer came moved part part.file.*
exit 0
