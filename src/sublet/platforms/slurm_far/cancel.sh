# Stops sessions. Arguments: the root directory, who wants it (as JSON), then keys. The first who asked is kept. What has not
# begun never will, and its end is told at once. Jobs are known by their names: a controller that lost its last seconds
# gives a number again, perhaps to somebody else's job.

root=$1 by=$2
shift 2

never() { # what has its records in this directory, if it has not begun
    mkdir "$1/ran" 2>/dev/null || return 0
    IFS= read -r first <cancel
    now=$(date +%s)
    printf '{"kind":"cancelled","code":143,"by":%s,"detail":"it had not started","started":%s,"ended":%s,"job":"%s"}' \
        "$first" "$now" "$now" "$id" >"$1/end.part" && mv "$1/end.part" "$1/end.json"
}

keys=' '
for key; do
    cd "$root/sessions/$key" 2>/dev/null || continue
    [ -e end.json ] || [ -e joined ] && continue
    (set -C && printf '%s\n' "$by" >cancel) 2>/dev/null
    id= parts=
    [ -r id ] && IFS= read -r id <id
    if [ -r parts ] && read -r parts <parts; then
        while [ "$parts" -gt 0 ]; do
            parts=$((parts - 1))
            mkdir -p "part/$parts"
            never "part/$parts"
        done
    else
        never .
    fi
    keys="$keys$key "
done
[ "$keys" != ' ' ] || exit 0
rows=$(squeue --me --noheader --format='%F %j') || exit 1
ids=' '
while read -r id name; do
    case $keys in *" $name "*) ;; *) continue ;; esac
    case $ids in *" $id "*) ;; *) ids="$ids$id " ;; esac
done <<END
$rows
END
[ "$ids" = ' ' ] || exec scancel --quiet $ids
