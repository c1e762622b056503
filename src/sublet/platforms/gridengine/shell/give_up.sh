# Grid Engine's piece of give_up.sh. By its name, which is never given again; one that is over, or was never made, is no error.

give_up_job() {
    words=$(qrdel "s-$key" 2>&1) && return
    case $words in *"does not exist"* | *"do not exist"* | *"not exist"*) return 0 ;; esac
    printf '%s\n' "$words"
    return 1
}

