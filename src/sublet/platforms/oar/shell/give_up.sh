# OAR's part of give_up.sh: a reservation is selected by name, which is never reused. One that has ended is left alone.

give_up_job() { oardel --sql "job_name = '$key' AND state IN ('Waiting','Hold','toAckReservation','toLaunch','Launching','Running')"; }

