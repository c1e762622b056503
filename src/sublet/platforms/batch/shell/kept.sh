# Lists the shared files, one per line: name, size, when it was last needed, the sessions that need it now, and after a
# tab its label. Arguments: the root directory, and `all` to include incomplete ones.
cd "$1/kept" 2>/dev/null || exit 0
for name in *; do
    size=
    if [ -r "$name/size" ]; then
        read -r size <"$name/size"
    elif [ -f "$name/content" ]; then
        size=$(stat -c %s "$name/content")
    elif [ "$2" = all ] && [ -d "$name" ]; then
        size=$(du -sk "$name" | cut -f 1) size=$((size * 1024))
    fi
    [ -n "$size" ] || continue
    printf '%s %s %s' "$name" "$size" "$(stat -c %Y "$name/used")"
    for user in "$name/users"/*; do
        key=${user##*/}
        if needs_files "$key"; then printf ' %s' "$key"; fi
    done
    label=
    [ -r "$name/label" ] && IFS= read -r label <"$name/label"
    printf '\t%s\n' "$label"
done
exit 0
