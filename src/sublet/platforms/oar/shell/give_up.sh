# OAR's piece of give_up.sh: a reservation is found by its name, which is never given again. One that is over is left alone.

give_up_job() { oardel --sql "job_name = '$key' AND state IN ('Waiting','Hold','toAckReservation','toLaunch','Launching','Running')"; }

