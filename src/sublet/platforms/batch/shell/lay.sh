# Puts content of the cache into the directory of a session that isn't submitted yet. Arguments: the root directory, the
# session's key, then for each: the entry's name in `kept`, its path below the session's directory, and `link` (for
# reading only, so that it takes no extra space) or `copy` (it may be changed). The result of an earlier try is
# replaced.
root=$1 key=$2
shift 2
umask 077
cd "$root/incoming/$key" || exit 73
while [ $# -gt 0 ]; do
    from=$root/kept/$1/content to=$2 how=$3
    shift 3
    [ -e "$from" ] || { echo "$from is not there any more" >&2; exit 75; }
    case $to in */*) mkdir -p "${to%/*}" || exit 73 ;; esac
    rm -rf "$to" "$to.new"
    [ "$how" = link ] && cp -rl "$from" "$to.new" 2>/dev/null || {
        rm -rf "$to.new"
        cp -r --reflink=auto "$from" "$to.new" && chmod -R u+w "$to.new" || { rm -rf "$to.new"; exit 73; }
    }
    mv -T "$to.new" "$to" || exit 73
done
exit 0
