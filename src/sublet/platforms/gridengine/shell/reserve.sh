# Grid Engine's part of reserve.sh: an advance reservation, which jobs use by its number.

reserve_job() { qrsub -N "s-$key" "$@" 2>&1 | { words=$(cat); printf '%s\n' "$words"; case $words in *"has been granted"*) ;; *) printf '%s\n' "$words" >&2; exit 1 ;; esac; }; }

read_id() { id=$(printf '%s\n' "$said" | sed -n 's/.*advance reservation \([0-9]*\) has been granted.*/\1/p'); }

is_unsure() { case $(cat submit.log) in *"timed out"* | *"timeout"* | *"got read error"*) ;; *) return 1 ;; esac; }

