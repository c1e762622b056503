# Forgets the needs of a session that was never submitted: transfers that only it needed stop by themselves. Arguments:
# the root directory and the session's key. Answers with the notes on external transfers that nobody needs now, which
# the service must stop.
case $2 in '' | */* | .*) exit 64 ;; esac
cd "$1" 2>/dev/null || exit 0
rm -rf "incoming/$2"
for note in kept/*/transfer; do
    dir=${note%/*} needed=
    [ -e "$dir/users/$2" ] || continue
    rm -f "$dir/users/$2"
    for user in "$dir/users/"*; do
        if [ -d "sessions/${user##*/}" ] || [ -d "incoming/${user##*/}" ]; then needed=yes; fi
    done
    [ -n "$needed" ] || { cat "$note" && rm -rf "$note" "$dir/moved"; }
done
rm -f "kept/"*"/users/$2"
exit 0
