# Fetches an entry of the cache from an rsync server: `address` as rsync takes it, options of rsync, and in `secret` the
# password, which is only in rsync's environment. A partial transfer is resumed, and checked.
count() { tail -c 200 log | tr '\r' '\n' | sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p' | tail -n 1; }

bring() {
    if [ "$form" = file ]; then target=part.file.sublet-part; else target=part/; mkdir -p part || return; fi
    export RSYNC_PASSWORD="$secret"
    unset secret
    [ "$rate" = 0 ] || set -- "$@" "--bwlimit=$((rate / 1024 + 1))"
    failures=0 best=0 pause=1
    while :; do
        : >log
        rsync --contimeout=10 --info=progress2 "$@" -- "$address" "$target" </dev/null >log 2>complaint 3<&-
        code=$?
        [ "$code" != 0 ] && [ -z "$stopped" ] || return "$code"
        complaint=$(sed 's/^rsync: //' complaint | head -n 1)
        done=$(count)
        if [ "${done:-0}" -gt "$best" ]; then best=$done failures=0 pause=1; fi
        failures=$((failures + 1))
        case $code in
            10 | 35) [ "$best" -gt 0 ] || fail unreachable "$complaint" ;;
            12 | 20 | 30) ;; # the connection broke, or timed out
            24) fail changed "some of it vanished while it was brought" ;;
            11) fail failed "$complaint" ;;
            *) fail refused "$complaint" ;;
        esac
        [ "$failures" -lt 5 ] || fail cut "$complaint ($failures tries)"
        sleep "$pause" 3<&-
        pause=$((pause * 2))
    done
}
