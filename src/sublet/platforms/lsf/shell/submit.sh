# LSF's part of submit.sh. A job's name is its session's key; for an array, its size from `parts` is appended.

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

submit_job() {
    name=$key
    [ -r parts ] && read -r parts <parts && name="$key[1-$parts]"
    exec bsub -J "$name" -cwd "$dir" -oo "$dir/lsf.log" -rn "$@" "exec sh $(quoted "$dir/job.sh") $(quoted "$dir")"
}

read_id() { id=$(printf '%s\n' "$said" | sed -n 's/.*Job <\([0-9]*\)> is submitted.*/\1/p'); }

is_unsure() { case $(cat submit.log) in *"timed out"* | *"time out"* | *"not responding"*) ;; *) return 1 ;; esac; }

