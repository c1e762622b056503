# Lists the keys of all sessions that one service left here. Arguments: the root directory, the service's own ID, and
# for how many seconds they must have been here. Interrupted removals are completed.
owner=$2 least=$3
cd "$1" 2>/dev/null || exit 0
now=$(date +%s)
for dir in sessions/* incoming/*; do
    said=
    [ -r "$dir/owner" ] && IFS= read -r said <"$dir/owner"
    [ "$said" = "$owner" ] && [ $((now - $(stat -c %Y "$dir/owner"))) -ge "$least" ] && printf '%s\n' "${dir#*/}"
done
for left in trash/*; do
    [ -e "$left" ] && [ $((now - $(stat -c %Z "$left"))) -ge 3600 ] && find "$left" -type d ! -perm -700 -exec chmod u+rwx {} + && rm -rf "$left"
done
exit 0
