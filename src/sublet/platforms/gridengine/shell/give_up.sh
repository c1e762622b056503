# Grid Engine's piece of give_up.sh. By its name, which is never given again; one that is over, or was never made, is no error. What
# qrdel answers is not enough: while a job in it is ending, the reservation stays. So only the list tells, which shows ten letters of a name.

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

