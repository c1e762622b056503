# The files that many share, one a line: name, size, when it was last needed, and the sessions that need it now. Argument: the
# root directory.
cd "$1/kept" 2>/dev/null || exit 0
for name in *; do
    [ -f "$name/content" ] || continue
    printf '%s %s %s' "$name" "$(stat -c %s "$name/content")" "$(stat -c %Y "$name/used")"
    for user in "$name/users"/*; do
        key=${user##*/}
        if [ -d "../sessions/$key" ] || [ -d "../incoming/$key" ]; then printf ' %s' "$key"; fi
    done
    printf '\n'
done
exit 0
