# Stops sessions. Arguments: the root directory, who wants it (as JSON), then keys. The first who asked is kept. What has not
# begun never will, and its end is told at once.

root=$1 by=$2
shift 2
ids=
for key; do
    cd "$root/sessions/$key" 2>/dev/null || continue
    [ -e end.json ] && continue
    (set -C && printf '%s\n' "$by" >cancel) 2>/dev/null
    id=
    [ -r id ] && IFS= read -r id <id
    [ -n "$id" ] || id=$(squeue --me --noheader --name="$key" --format=%A)
    if mkdir ran 2>/dev/null; then
        IFS= read -r first <cancel
        now=$(date +%s)
        printf '{"kind":"cancelled","code":143,"by":%s,"detail":"it had not started","started":%s,"ended":%s,"job":"%s"}' \
            "$first" "$now" "$now" "$id" >end.part && mv end.part end.json
    fi
    ids="$ids $id"
done
[ -z "${ids# }" ] || exec scancel --quiet $ids
