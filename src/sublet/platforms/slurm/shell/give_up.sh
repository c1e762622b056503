# Slurm's part of give_up.sh. Operators can delete anybody's reservation, so it is checked again, and must be for this
# user only. One that has ended, or was never made, is no error. It can't be deleted while a job in it is ending.

give_up_job() {
    name=sublet-$key
    row=$(scontrol --oneliner show reservation "$name" 2>&1) || {
        case $row in *"not found"* | *"is invalid"*) return 0 ;; esac
        printf '%s\n' "$row"
        return 1
    }
    case " $row " in *" ReservationName=$name "*) ;; *) return 0 ;; esac # there are none at all
    case " $row " in *" Users=$(id -un) "*) ;; *) echo "the reservation $name is for others: it stays"; return 0 ;; esac
    for try in 1 2 3; do
        words=$(scontrol delete ReservationName="$name" 2>&1) && return
        case $words in *"is invalid"* | *"not found"*) return 0 ;; *"in use"*) sleep 1 ;; *) break ;; esac
    done
    printf '%s\n' "$words"
    return 1
}

