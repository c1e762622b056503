# Slurm's part of submit.sh.

submit_job() { exec sbatch --parsable --no-requeue --job-name="$key" --chdir="$dir" "$@" ./job.sh "$dir"; }

read_id() {
    id=
    while read -r line; do # at some sites sbatch prints more than the number
        line=${line%%;*}
        case ${line##* } in '' | *[!0-9]*) ;; *) id=${line##* } ;; esac
    done <<END
$said
END
}

is_unsure() {
    case $(cat submit.log) in
        *"timed out"* | *"Zero Bytes"* | *"Unexpected message"* | *"reset by peer"*) ;;
        *) return 1 ;;
    esac
}

