# Stops sessions. Arguments: the root directory, who wants it (as JSON), then keys. The first who asked is kept. What has not
# begun never will, and its end is told at once.
#
# Jobs are known by their names, which are the sessions' keys and never given again: a controller that lost its last seconds
# gives a number again, perhaps to somebody else's job, and it may do so between a look at the queue and a cancel. So no
# number is named: scancel itself chooses by the name, or has the controller do so, at once and as a whole, where that can
# (SCANCEL_CTLD; older ones don't mind). One that has no job any more is no error. A controller that is away is told as "not
# permitted" on the first road, and as what it is on the second.

root=$1 by=$2
shift 2

never() { # what has its records in this directory, if it has not begun
    mkdir "$1/ran" 2>/dev/null || return 0
    IFS= read -r first <cancel
    now=$(date +%s)
    printf '{"kind":"cancelled","code":143,"by":%s,"detail":"it had not started","started":%s,"ended":%s,"job":"%s"}' \
        "$first" "$now" "$now" "$id" >"$1/end.part" && mv "$1/end.part" "$1/end.json"
}

code=0
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
    SCANCEL_CTLD=1 scancel --quiet --name="$key" 2>/dev/null || scancel --quiet --name="$key" || code=1
done
exit "$code"
