# What a reservation runs that is itself a job, until its session is there: then it is that session's job. Argument: the directory of
# the reservation, which goes when it is given up. The scheduler ends it with its time.
key=${1##*/} root=${1%/reservations/*}
session=$root/sessions/$key
while [ -d "$1" ]; do
    [ -s "$session/id" ] && exec sh "$session/job.sh" "$session"
    sleep 1
done
exit 0
