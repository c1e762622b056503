# Removes everything of a session. Arguments: the root directory and the key. Directories are moved aside first, so that
# a half-removed session is never seen. With the last session, the directories that contained them are removed too.
root=$1 key=$2 trash=trash
case $key in '' | */* | .*) exit 64 ;; esac
cd "$root" || exit 0
for place in sessions incoming; do # a reservation is removed by give_up.sh, not before
    aside "$place/$key" "$key.$place.$$"
    [ $? = 73 ] && exit 73
done
for left in "trash/$key."*; do
    [ -d "$left" ] && find "$left" -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null # not files: they may be hard links to the cache
    rm -rf "$left"
done
for link in t/*; do # the short paths to temporary files
    [ -L "$link" ] && [ ! -e "$link" ] && rm -f "$link"
done
rmdir trash incoming kept sessions reservations t 2>/dev/null
cd / && rmdir "$root" 2>/dev/null
exit 0
