# OAR's part of reserve.sh: the reservation is a job that waits for its session (await.sh), and becomes it.

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

reserve_job() {
    words=$(oarsub -n "$key" -d "$dir" -O "$dir/oar.log" -E "$dir/oar.log" "$@" "exec sh $(quoted "$dir/await.sh") $(quoted "$dir")")
    code=$?
    [ "$code" = 0 ] || printf '%s\n' "$words" | sed -n 's/^Reservation not valid --> KO (\(.*\))/\1/p' >&2
    printf '%s\n' "$words"
    return "$code"
}

read_id() {
    id=
    while read -r line; do
        case $line in OAR_JOB_ID=[0-9]*) [ -n "$id" ] || id=${line#OAR_JOB_ID=} ;; esac
    done <<END
$said
END
}

is_unsure() { case $(cat submit.log) in *"timed out"* | *"closed the connection"*) ;; *) return 1 ;; esac; }

