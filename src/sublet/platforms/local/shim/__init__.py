"""The small process that supervises one job of the platform `local`, whatever happens to the service.

It is started as `python -I -S -c START PLATFORMS_DIRECTORY SESSION_DIRECTORY READY_FD`, uses the standard library only
and imports its own files as a top-level package, so that it starts in a few milliseconds, with the signals that it
waits for blocked. None of it runs in the service, except the functions about processes and cgroups.

The files of a job in its session directory:

    job.json      what to run, written before the shim starts (0600: it may contain secrets)
    ran/          made by the shim first of all; if it exists already, the shim exits: nothing runs twice
    ran/begun     made just before the program may run: without it, the program never ran
    ran/shim.json the shim's identity: pid, start time, boot id, and when it began
    stdout stderr the job's output, appended by itself; the shim cuts them at the output limit and adds a note
    warning       when it ends, written `warn` before the end (its path is in SUBLET_WARNING; a line goes to stderr too)
    connector     where it listens, once it does
    cancel        who cancelled it; followed by SIGUSR1 (or, on a full disk, only by SIGUSR2)
    until         the moved end of its time; followed by SIGUSR1
    pause         an order to pause, or empty; followed by SIGUSR1
    paused        the same, once all its processes are stopped, or continue
    end.json      how it ended: its space is reserved beforehand, in case the disk is full, and it is renamed into place

At `grace` before the end of the booked time all its processes get SIGTERM, so that they can save their work, and at the
end SIGKILL; a cancel sends SIGTERM at once and SIGKILL after `grace`. In a short time, `warn` is at most half of it and
`grace` a quarter. When the main process ends, processes that it left running are stopped the same way, within a second.
The shim is a subreaper, so double-forked processes stay its descendants; if the shim itself is killed, the main process
is killed with it (PR_SET_PDEATHSIG) and the service cleans up the rest.
"""

START = "import sys; sys.path.append(sys.argv[1]); from shim.main import main; main(sys.argv[2], int(sys.argv[3]))"
