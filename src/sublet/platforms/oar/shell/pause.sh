# OAR's part of pause.sh. Queued jobs are held; only an administrator can suspend running ones, unless the site's
# settings let users resume those.

pause_job() {
    state=$(oarstat -s -j "$id") || exit 1
    case $verb:$state in
        hold:*Waiting*) oarhold "$id" >&2 && echo queued || exit 1 ;;
        release:*Hold*) oarresume "$id" >&2 && echo queued || exit 1 ;;
        hold:*Hold* | release:*Waiting*) echo queued ;;
        release:*Suspended*)
            oarresume "$id" >&2 && echo running && return
            echo "an administrator suspended the job on OAR, and only an administrator can resume it" >&2
            exit 1
            ;;
        *toAck*) echo "OAR is still confirming the job's reservation" >&2; exit 1 ;;
        *Running* | *Launch* | *Suspended* | *Resuming*)
            echo "on OAR only an administrator can suspend a job that runs" >&2
            exit 1
            ;;
    esac
}
