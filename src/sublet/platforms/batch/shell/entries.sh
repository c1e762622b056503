# Lists which of these entries of the cache exist, one per line. Arguments: the root directory, then their names in
# `kept`. An entry that was changed since it was published doesn't count (entry.sh).
cd "$1/kept" 2>/dev/null || exit 0
shift
for name; do
    case $name in '' | */* | .*) exit 64 ;; esac
    [ -e "$name/content" ] || continue
    is_unchanged "$name" || continue
    printf '%s\n' "$name"
done
exit 0
