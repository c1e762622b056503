# Lists one service's reservations, one per line: the key, and how many seconds ago it was made. Arguments: the root
# directory, the service's own ID.
cd "$1/reservations" 2>/dev/null || exit 0
now=$(date +%s)
for dir in *; do
    said=
    [ -r "$dir/owner" ] && IFS= read -r said <"$dir/owner"
    [ "$said" = "$2" ] && printf '%s %s\n' "$dir" $((now - $(stat -c %Y "$dir/owner")))
done
exit 0
