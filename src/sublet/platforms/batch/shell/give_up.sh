# Gives up reservations, or their remains when their sessions are over. The scheduler's own part, with `give_up_job`,
# stands before it: that cancels the reservation with the name `$key` and the number `$id`, if known; one that is gone
# is no error. Arguments: the root directory, then keys. A reservation that can't be cancelled now stays, to be tried
# again.
root=$1
shift
code=0
for key; do
    cd "$root/reservations/$key" 2>/dev/null || continue
    id=
    [ -r id ] && IFS= read -r id <id
    give_up_job >&2 || { code=1; continue; }
    cd "$root" && rm -rf "reservations/$key"
done
cd "$root" 2>/dev/null && rmdir trash incoming kept sessions reservations t 2>/dev/null # as clean.sh does
cd / && rmdir "$root" 2>/dev/null
exit "$code"
