"""The small process that stays with one job of the platform `local`, whatever becomes of the service.

It is started as `python -I -S -c START PLATFORMS_DIRECTORY SESSION_DIRECTORY READY_FD`, uses the standard library only
and imports its own files as a top-level package, so that it starts in a few milliseconds, with the signals that it
waits for blocked. Nothing of it runs in the service, except the functions about processes and control groups.

The life of a job, and what lies in its session directory:

    job.json      what to run, written before the shim starts (0600: it may hold secrets)
    ran/          made by the shim as its first act; who finds it there already goes away: nothing runs twice
    ran/begun     made just before the program is let go: without it, it never ran
    ran/shim.json who the shim is: pid, start time, boot id, and when it began
    stdout stderr what the job prints, appended by itself; the shim cuts them at the output limit and says so in them
    warning       when it ends, from `warn` before the end on (its path is in SUBLET_WARNING; a line goes to stderr too)
    connector     where it listens, once it does
    cancel        who wants it stopped; then SIGUSR1 (or, on a full disk, only SIGUSR2)
    until         the moved end of its time; then SIGUSR1
    pause         that it is to stand still, or empty; then SIGUSR1
    paused        the same, once all its processes are stopped, or go on again
    end.json      how it ended: made beforehand, so that the end can be told on a full disk, and renamed into place

At `grace` before the end of the booked time all its processes get SIGTERM, so that they can save their work, and at the
end SIGKILL; a cancel sends SIGTERM at once and SIGKILL after `grace`. In a short time, `warn` is at most half of it and
`grace` a quarter. When the main process ends, what it left running is stopped the
same way, within a second. The shim is a subreaper, so double-forked processes stay its descendants; if it is itself
killed, the main process is killed with it (PR_SET_PDEATHSIG) and the service sweeps the rest.
"""

START = "import sys; sys.path.append(sys.argv[1]); from shim.main import main; main(sys.argv[2], int(sys.argv[3]))"
