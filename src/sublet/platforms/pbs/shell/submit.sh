# PBS's part of submit.sh. Names there must begin with a letter, so a job is named `s-KEY`. qsub takes no arguments for
# the script, which finds its directory by an environment variable.

submit_job() {
    case $dir in *[,=\\\"\']*) echo "a path with a comma, a quote or an equals sign can't be told to PBS: $dir" >&2; return 1 ;; esac
    exec qsub -N "s-$key" -j oe -o "$dir/pbs.log" -v "SUBLET_DIRECTORY=$dir" "$@" ./job.sh
}

read_id() {
    id=
    while read -r line; do # `123.server`, for an array `123[].server`; hooks may print anything before it
        case $line in [0-9]*.*) id=${line%% *} ;; esac
    done <<END
$said
END
}

is_unsure() { case $(cat submit.log) in *"timed out"* | *"timeout"* | *"End of File"* | *"Communication failure"*) ;; *) return 1 ;; esac; }

