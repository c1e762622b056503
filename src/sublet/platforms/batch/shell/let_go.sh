# Removes shared files that no session needs, or has needed for this many seconds, and prints their names. Arguments:
# the root directory, the seconds, then names (none: all). Each is moved aside first, and comes back if it is needed
# again meanwhile. Links to them in the directories of sessions that are over go with them, so that their space becomes
# free; those are data that was only read, never results. Empty directories are removed too.
root=$1 idle=$2 trash=../trash
shift 2
tidy() {
    cd "$root" 2>/dev/null && rmdir kept trash sessions incoming t 2>/dev/null
    cd / && rmdir "$root" 2>/dev/null
}
unlink_data() { # argument: a session's directory
    for part in data storage; do
        [ -d "$1/$part" ] || continue
        find "$1/$part" -type d ! -perm -700 -exec chmod u+rwx {} + # they are read-only for the session
        find "$1/$part" -type f -links +1 ! -perm -200 -exec rm -f {} +
    done
}
trap 'code=$?; tidy; exit "$code"' EXIT
cd "$root/kept" 2>/dev/null || exit 0
[ $# -gt 0 ] || set -- *
now=$(date +%s)
for name; do
    case $name in '' | */* | .*) exit 64 ;; esac
    [ -d "$name" ] || continue
    for user in "$name/users"/*; do
        key=${user##*/}
        [ -d "../sessions/$key" ] || [ -d "../incoming/$key" ] || rm -f "$user"
    done
    used=$(stat -c %Y "$name/used" 2>/dev/null || stat -c %Y "$name") || continue
    [ $((now - used)) -ge "$idle" ] || continue
    for user in "$name/users"/*; do
        key=${user##*/}
        needs_files "$key" && continue 2
        unlink_data "../sessions/$key"
        rm -f "$user"
    done
    [ ! -d "$name/users" ] || rmdir "$name/users" 2>/dev/null || continue
    aside "$name" "$name.$$" || continue
    left=$trash/$name.$$
    if [ -d "$left/users" ] && [ ! -e "$name" ] && mv "$left" "$name"; then continue; fi
    chmod -R u+rwX "$left" && rm -rf "$left" && printf '%s\n' "$name"
done
exit 0
