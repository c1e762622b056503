# Says what a session knows a file by that its document names by its path: of that very file, as it is now (container_unpacked.py tells how).
# Argument: the path. Exits with 66 if there is no such file.
real=$(readlink -f -- "$1") && [ -f "$real" ] && [ -r "$real" ] || exit 66
size=$(stat -c %s -- "$real") time=$(stat -c %.9Y -- "$real") || exit 66
printf '%s\n%s\n%s' "$real" "$size" "${time%.*}${time#*.}" | sha256sum | cut -d ' ' -f 1
