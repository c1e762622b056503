# OAR's part of submit.sh. A job with a reservation is that reservation: its program waits until the session's directory
# is complete (await.sh).

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

submit_job() {
    [ "$1" = --reserved ] && { find_reservation; return; }
    exec oarsub -n "$key" -d "$dir" -O "$dir/oar.log" -E "$dir/oar.log" "$@" "exec sh $(quoted "$dir/job.sh") $(quoted "$dir")"
}

find_reservation() {
    read -r number <"$root/reservations/$key/id" || { echo "the reservation is not there any more" >&2; return 1; }
    state=$(oarstat -s -j "$number") || return
    case $state in
        *Waiting* | *Launch* | *toAck* | *Running*) echo "OAR_JOB_ID=$number" ;;
        *) echo "reservation $number is over${state:+ (${state##*: })}" >&2; return 1 ;;
    esac
}

read_id() {
    id=
    while read -r line; do # admission rules may print anything before it
        case $line in OAR_JOB_ID=[0-9]*) [ -n "$id" ] || id=${line#OAR_JOB_ID=} ;; esac
    done <<END
$said
END
}

is_unsure() { case $(cat submit.log) in *"timed out"* | *"closed the connection"*) ;; *) return 1 ;; esac; }

