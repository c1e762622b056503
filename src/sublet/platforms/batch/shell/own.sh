# For scripts that make directories from which sessions run: `own DIRECTORY…` returns 77 with a message if others can
# write to one. Whoever owns it, or can write there, can replace our job.sh. A group may write if it is the user's
# private group, named like the user. Missing directories are left out, but not if all are missing. `ls -n` is used
# because it is the same everywhere; `stat` has different options on each system.
own() {
    me=$(id -u)
    LC_ALL=C ls -ldnL "$@" 2>/dev/null | {
        seen=
        while read -r mode _ uid gid _ _ _ _ name; do
            seen=1 others=
            case $uid in
                "$me" | 0) ;;
                *) echo "$name belongs to $(id -un "$uid" 2>/dev/null || echo "user $uid")" >&2; exit 77 ;;
            esac
            case $mode in
                ????????w*) others=1 ;;
                ?????w*+) others=1 ;; # an access control list may name anyone
                ?????w*) [ "$gid" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] || others=1 ;;
            esac
            [ -z "$others" ] || { echo "others can write in $name (chmod go-w $name)" >&2; exit 77; }
        done
        [ -n "$seen" ] || { echo "$1 can't be looked at" >&2; exit 77; }
    }
}
