# OAR's part of cancel.sh. Jobs are selected by name and state in OAR's own database. A running job notices its
# cancellation by itself and records its end, because oardel kills at once; a second request after half a minute kills
# it.

cancel_job() {
    states="'Waiting','Hold','toAckReservation','toLaunch','Launching'"
    [ $(($(date +%s) - $(stat -c %Y cancel))) -lt 30 ] || states="$states,'Running','Suspended'"
    oardel --sql "job_name = '$key' AND state IN ($states)" >/dev/null
}

