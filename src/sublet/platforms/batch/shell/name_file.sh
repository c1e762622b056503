# Prints the ID by which a session knows an image file that its request names by path: a hash of the path, size and time
# (see container_unpacked.py). Argument: the path. Exits with 66 if there is no such file.
real=$(readlink -f -- "$1") && [ -f "$real" ] && [ -r "$real" ] || exit 66
size=$(stat -c %s -- "$real") time=$(stat -c %.9Y -- "$real") || exit 66
printf '%s\n%s\n%s' "$real" "$size" "${time%.*}${time#*.}" | sha256sum | cut -d ' ' -f 1
