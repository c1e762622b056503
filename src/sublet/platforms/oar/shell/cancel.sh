# OAR's piece of cancel.sh. Jobs are chosen by their name and state in OAR's own database. What runs sees by itself that it is
# cancelled, and tells of its end, for oardel kills at once; whoever asks again half a minute later wants it gone.

cancel_job() {
    states="'Waiting','Hold','toAckReservation','toLaunch','Launching'"
    [ $(($(date +%s) - $(stat -c %Y cancel))) -lt 30 ] || states="$states,'Running','Suspended'"
    oardel --sql "job_name = '$key' AND state IN ($states)" >/dev/null
}

