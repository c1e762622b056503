# Unpacks a kept image file beside it, as `unpacked`, for all sessions whose tool runs a directory (its layout is
# described in image_unpacker.py). Arguments: the root directory, the file's name in `kept`, the path of unsquashfs (or
# empty), and optionally the path of the file, if it is elsewhere: then a placeholder stands for it in `kept`. Stdin:
# the program that unpacks. Exits with 65 if it isn't such an image; with 69 if there is no Python.
dir=$1/kept/$2
trap '' HUP PIPE
umask 077
find_python || { cat >/dev/null; exit 69; }
made=$dir/unpacking.$$
nice -n 10 "$python" -I - "${4:-$dir/content}" "$made" "$3"
code=$?
if [ "$code" = 0 ]; then
    mv -T "$made" "$dir/unpacked" 2>/dev/null || [ -f "$dir/unpacked/image.json" ] || code=75 # another was faster
    [ -z "$4" ] || printf 'unpacked\n' >"$dir/content"
    size=$(du -sck "$dir/content" "$dir/unpacked" | tail -n 1 | cut -f 1) && printf '%s\n' "$((size * 1024))" >"$dir/size"
fi
[ ! -e "$made" ] || { chmod -R u+rwX "$made"; rm -rf "$made"; }
exit "$code"
