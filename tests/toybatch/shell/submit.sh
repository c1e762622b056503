# Starts it; its number has a name behind it, as some schedulers' have.
submit_job() {
    case $1 in
        --reserved) echo "Your job $(cat "$root/reservations/$key/id") has been submitted"; return ;;
        --nowhere) echo "there is no queue nowhere" >&2; return 1 ;;
        --busy) echo "the server is busy" >&2; return 1 ;;
    esac
    setsid ./batch.sh >/dev/null 2>&1 &
    echo "Your job $!.toy has been submitted"
}
read_id() { id=${said#Your job } id=${id%% *}; }
is_unsure() { case $(cat submit.log) in *busy*) ;; *) return 1 ;; esac; }

