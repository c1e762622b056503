# For what makes directories that sessions are run from: `own DIRECTORY…` returns 77, and says why, if others could change one.
# Whoever owns it, or can write there, can put another job.sh in the place of ours. A group may write that has the user's own
# name, as on systems which give everybody one. What isn't there is left out, but not all of it. `ls -n` is asked because it is the
# same everywhere; `stat` has other options on each system.
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
                ?????w*+) others=1 ;; # as many as an access control list says
                ?????w*) [ "$gid" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] || others=1 ;;
            esac
            [ -z "$others" ] || { echo "others can write in $name (chmod go-w $name)" >&2; exit 77; }
        done
        [ -n "$seen" ] || { echo "$1 can't be looked at" >&2; exit 77; }
    }
}
