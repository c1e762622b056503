# The keys of all sessions that one service left here, one a line. Arguments: the root directory and the service's own name.
cd "$1/sessions" 2>/dev/null || exit 0
for dir in *; do
    owner=
    [ -r "$dir/owner" ] && IFS= read -r owner <"$dir/owner"
    [ "$owner" = "$2" ] && printf '%s\n' "$dir"
done
exit 0
