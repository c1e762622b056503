# PBS's piece of submit.sh. Names are letters first there, so a job is called `s-KEY`. qsub takes no words for the script, which
# finds its directory by the variable.

submit_job() {
    case $dir in *[,=\\\"\']*) echo "a path with a comma, a quote or an equals sign can't be told to PBS: $dir" >&2; return 1 ;; esac
    exec qsub -N "s-$key" -r n -j oe -o "$dir/pbs.log" -v "SUBLET_DIRECTORY=$dir" "$@" ./job.sh
}

read_id() {
    id=
    while read -r line; do # `123.server`, of an array `123[].server`; hooks say what they like before it
        case $line in [0-9]*.*) id=${line%% *} ;; esac
    done <<END
$said
END
}

is_unsure() { case $(cat submit.log) in *"timed out"* | *"timeout"* | *"End of File"* | *"Communication failure"*) ;; *) return 1 ;; esac; }

