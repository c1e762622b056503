#!/bin/sh
# Looks, before a job starts, whether its program can be executed here: HTCondor's hook PREPARE_JOB. HTCondor holds a job that
# can't be started, with the reason; but behind a job wrapper (run_job.pl) it doesn't see that, and would try again for ever.
# Reads the job's ad; prints why the job is to be held, and fails, or is silent.

PATH=$PATH:/usr/bin:/bin
program= sent=yes
while IFS= read -r line; do
    case $line in
        'Cmd = "'*) program=${line#'Cmd = "'} program=${program%'"'} ;;
        'TransferExecutable = false'*) sent= ;;
        'ContainerImage = '* | 'DockerImage = '*) exit 0 ;; # its program is in the image
    esac
done
case $program in '' | *\\*) exit 0 ;; esac # none, or a name that is written in another way than it is
scratch=${_CONDOR_SCRATCH_DIR:-.}
path=$program
[ -n "$sent" ] && path=$scratch/${program##*/}
case $path in /*) ;; *) path=$scratch/$path ;; esac
[ -n "$sent" ] && [ -e "$scratch/condor_exec.exe" ] && path=$scratch/condor_exec.exe

hold() { # why
    why=$(printf '%s' "Failed to execute '${program##*/}': $1" | tr '\\"\r\n\t' "''   ")
    printf 'HookStatusCode = 6\nHookStatusMessage = "%s"\n' "$why"
    exit 1
}

[ -e "$path" ] || hold 'No such file or directory'
{ [ ! -d "$path" ] && [ -x "$path" ]; } || hold 'Permission denied'
[ -r "$path" ] || exit 0
start=$(head -c 4 "$path" | tr -d '\000')
case $start in
    '#!'*)
        IFS= read -r line <"$path"
        cr=$(printf '\r')
        interpreter=$(printf '%s\n' "$line" | sed 's/^#![[:space:]]*//; s/[ 	].*//')
        case $interpreter in
            *"$cr") hold 'its first line ends as on Windows (CRLF)' ;;
            /*) [ -e "$interpreter" ] || hold "No such file or directory (its interpreter '$interpreter')" ;;
        esac
        ;;
    "$(printf '\177ELF')") ;;
    *)
        for type in /proc/sys/fs/binfmt_misc/*; do # of programs that the kernel can execute too
            case ${type##*/} in register | status | '*') ;; *) exit 0 ;; esac
        done
        hold 'Exec format error (its first line is no #!, and it is no program of this machine)'
        ;;
esac
