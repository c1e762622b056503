# Gives reservations up, or what is left of them when their sessions are over. Before it stands the scheduler's own piece, with `give_up_job`, which cancels the
# reservation that is called `$key` and has the number `$id`, if that is known; one that is gone is no error. Arguments: the root
# directory, then keys. What can't be cancelled now stays, to be tried again.
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
