# Grid Engine's part of submit.sh. Names there can't begin with a digit, so a job is named `s-KEY`. With `--reserved` it
# runs in the advance reservation that was made for it.

submit_job() {
    if [ "$1" = --reserved ]; then
        shift
        read -r number <"$root/reservations/$key/id" || { echo "the reservation is not there any more" >&2; return 1; }
        set -- -ar "$number" "$@"
    fi
    exec qsub -terse -N "s-$key" -wd "$dir" -j y -S /bin/sh -r n "$@" ./job.sh "$dir"
}

read_id() {
    id=
    while read -r line; do # `12`, or for an array `12.1-3:1`
        case ${line%%.*} in '' | *[!0-9]*) ;; *) id=${line%%.*} ;; esac
    done <<END
$said
END
}

is_unsure() { case $(cat submit.log) in *"timed out"* | *"timeout"* | *"got read error"*) ;; *) return 1 ;; esac; }

