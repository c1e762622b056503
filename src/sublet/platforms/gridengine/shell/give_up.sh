# Grid Engine's part of give_up.sh. A reservation is selected by name, which is never reused; one that has ended, or was
# never made, is no error. The answer of qrdel is not enough: while a job in it is ending, the reservation stays. So the
# list is checked, which shows ten characters of a name.

give_up_job() {
    words=$(qrdel "s-$key" 2>&1)
    rows=$(qrstat 2>&1) || { printf '%s\n' "$rows"; return 1; }
    short=$(printf '%.10s' "s-$key")
    while read -r _ name _ state _; do
        [ "$name" = "$short" ] && [ "$state" != d ] && { printf '%s\n' "$words"; return 1; }
    done <<END
$rows
END
    return 0
}

