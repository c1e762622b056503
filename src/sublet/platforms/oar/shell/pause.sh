# OAR's part of pause.sh. Queued jobs are held; only an administrator can suspend running ones.

pause_job() {
    state=$(oarstat -s -j "$id") || exit 1
    case $verb:$state in
        hold:*Waiting*) oarhold "$id" >&2 && echo queued || exit 1 ;;
        release:*Hold*) oarresume "$id" >&2 && echo queued || exit 1 ;;
        *Running* | *Launch*) echo "on OAR only an administrator can suspend a job that runs" >&2; exit 1 ;;
    esac
}

