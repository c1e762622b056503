# Run by a reservation that is itself a job: it waits until its session exists, and then becomes that session's job.
# Argument: the directory of the reservation, which is removed when it is given up. The scheduler ends it with its time.
key=${1##*/} root=${1%/reservations/*}
session=$root/sessions/$key
while [ -d "$1" ]; do
    [ -s "$session/id" ] && exec sh "$session/job.sh" "$session"
    sleep 1
done
exit 0
