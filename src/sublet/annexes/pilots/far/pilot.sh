# One node's pilot: an HTCondor that takes jobs for its lease, until its time is over, it is idle for too long, or somebody who
# may do so stops it. Runs in a directory of its own on the node's disk, which came with everything below from the service:
#
#   values            what was decided for this node;  ask.sh: how the service is asked
#   fetch_kept        how a job gets a directory or a program that its system keeps for many
#   fetch_web         how it gets what it names by an address: out of the system's cache, where that is possible
#   run_job.pl        how a job is run, so that its end is not mistaken when the site stops all processes of the pilot at once
#   check_job         whether a job's program can be executed, which HTCondor doesn't see behind run_job
#   condor_config     the configuration;  annex.conf: the part of it that may change;  node.conf: what is found out here
#   tokens.d/         what lets it attach to the access point, for a while;  passwords.d/: the key that its owner's orders need
#
# Nothing is written anywhere else.

dir=${SUBLET_PILOT:?} node=$SUBLET_NODE carry=
cd "$dir" || exit 85
umask 077
. ./values
. ./ask.sh
nonce=${SUBLET_NONCE:-}
unset SUBLET_NONCE
session=${SUBLET_SESSION:-}
unset SUBLET_SESSION # who looks for the session's processes finds this shell, which ends the others in order
PATH=$PATH:/usr/sbin:/usr/local/sbin:/opt/condor/sbin CONDOR_CONFIG=$dir/condor_config
export PATH CONDOR_CONFIG
master= renewing= napping= why=

# Ends

say() { printf 'pilot: %s on %s: %s\n' "$number" "$node" "$1" >&2; }

clean() {
    [ -n "$renewing" ] && kill "$renewing" 2>/dev/null
    cd /
    for link in /tmp/sublet-* /var/tmp/sublet-* /dev/shm/sublet-*; do # short paths to what jobs had here
        case $([ -L "$link" ] && readlink "$link") in "$dir"/*) rm -f "$link" ;; esac
    done
    chmod -R u+rwX "$dir" 2>/dev/null
    rm -rf "$dir"
}

tell() { # what to do, then more to say; the answer is in the file `answer`
    [ "$carry" = spool ] && return 1 # there is nobody to tell but whom the far half's heartbeats tell
    printf 'secret=%s\nhave=%s\n%s\n' "$secret" "$(cat stamp)" "$2" >"said.$1"
    ask "/pilots/$lease/$number/$1" "said.$1" "answer.$1"
}

fail() { # exit code, words
    say "$2"
    tell end "why=$2" || :
    exit "$1"
}

stop() { # why; HTCondor lets go of its jobs at once
    [ -n "$why" ] || why=$1
    [ -z "$master" ] && exit 143
    kill -s "${quit:-QUIT}" "$master" 2>/dev/null
}

trap clean EXIT
trap 'stop "the site stopped it"' TERM INT HUP

# HTCondor

usable() { # the programs in this directory, if they are new enough; sets where they are
    sbin=$1 root=${1%/*}
    [ -x "$sbin/condor_master" ] && [ -x "$sbin/condor_startd" ] || return 1
    libexec=
    for place in libexec/condor libexec lib/condor/libexec; do
        [ -x "$root/$place/condor_shared_port" ] && libexec=$root/$place && break
    done
    [ -n "$libexec" ] || return 1
    for place in lib/condor lib64/condor lib; do [ -d "$root/$place" ] && lib=$root/$place && break; done
    version=$("$sbin/condor_master" -version 2>/dev/null | sed -n 's/^\$CondorVersion: \([0-9.]*\).*/\1/p')
    [ "${version%%.*}" -ge "$oldest" ] 2>/dev/null
}

installed() { # on the PATH, which may name only the programs that people use
    for on in $(printf '%s' "$PATH" | tr ':' ' '); do usable "$on" || usable "${on%/*}/sbin" && return 0; done
    return 1
}

module_of() { # as a module, where the system has them
    if ! command -v module >/dev/null 2>&1; then
        for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
            [ -r "$file" ] && . "$file" && break
        done
    fi
    command -v module >/dev/null 2>&1 || return 1
    for name in htcondor condor HTCondor; do module load "$name" >/dev/null 2>&1 && installed && return 0; done
    return 1
}

choose() { # which release the service chose for this node
    until=$(($(date +%s) + 900))
    while :; do
        tell release ""
        case $? in 0) break ;; 2) return 1 ;; esac
        [ "$(date +%s)" -lt "$until" ] || return 1
        sleep 5
    done
    read -r release <answer.release
}

choose_through_spool() { # the same; its answer comes when the system has it
    spool=$SUBLET_FAR_spool words="nobody answered through the spool" left=900
    { cat asked && printf 'want=release\n'; } >"$spool/tmp/ask.$number" && mv "$spool/tmp/ask.$number" "$spool/ask/$number" || return 1
    until [ -f "$spool/ans/$number.tar" ]; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 1
    done
    mv "$spool/ans/$number.tar" chosen.tar || return 1
    case $(head -c 8 chosen.tar) in refused:) words=$(head -n 1 chosen.tar | cut -c 10-300); return 1 ;; esac
    mkdir -p chosen && (cd chosen && tar xf ../chosen.tar) && . ./chosen/values
    rm -rf chosen chosen.tar
}

unpacked() { # from that release: kept on the system, else sent
    if [ "$carry" = spool ]; then choose_through_spool; else choose; fi || return 1
    kept=$SUBLET_KEPT/sha256-$release file=
    [ -r "$kept/content" ] && file=$kept/content && touch "$kept/used" 2>/dev/null
    [ -n "$file" ] || { tell archive "" && file=$dir/answer.archive; } || return 1
    words="the release is not the one that was meant"
    [ "$(sha256sum <"$file" | cut -d ' ' -f 1)" = "$release" ] || return 1
    words="the release can't be unpacked"
    mkdir -p condor && (cd condor && tar xf "$file") || return 1
    rm -f answer.archive
    words="the release can't be run here"
    for sbin in condor/sbin condor/usr/sbin condor/*/sbin; do
        LD_LIBRARY_PATH=$dir/${sbin%/sbin}/lib:$dir/${sbin%/sbin}/lib/condor${before:+:$before}
        export LD_LIBRARY_PATH
        usable "$dir/$sbin" && return 0
    done
    return 1
}

find_condor() {
    before=${LD_LIBRARY_PATH:-}
    installed && from=installed && return 0
    module_of && from="module $name" && return 0
    unpacked && from=release && return 0
    fail 84 "no HTCondor of version $oldest or newer was found, and none could be brought: $words"
}

# What the node has

minimum() { # of two numbers, of which the second may be missing
    if [ "${2:-0}" -gt 0 ] 2>/dev/null && [ "$2" -lt "$1" ]; then printf '%s' "$2"; else printf '%s' "$1"; fi
}

measure() {
    cores=${SLURM_CPUS_ON_NODE:-${SUBLET_CORES:-1}}
    memory=${SLURM_MEM_PER_NODE:-0}
    [ "$memory" -gt 0 ] || memory=$((${SLURM_MEM_PER_CPU:-0} * cores))
    [ "$memory" -gt 0 ] || [ -n "${SLURM_JOB_ID:-}" ] || memory=$((${SUBLET_MEMORY:-0} / 1048576))
    [ "$memory" -gt 0 ] || memory=$(($(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024))
    end=$(($(date +%s) + lifetime))
    [ -n "${SUBLET_UNTIL:-}" ] && end=$(minimum "$end" "$(date -u -d "$SUBLET_UNTIL" +%s)")
    end=$(($(minimum "$end" "${SLURM_JOB_END_TIME:-0}") - margin))
}

gpus() { # the lines for them: as HTCondor finds them, else as the scheduler names them; none, if none were asked for
    seen=${CUDA_VISIBLE_DEVICES:-${ROCR_VISIBLE_DEVICES:-${GPU_DEVICE_ORDINAL:-}}}
    case ${SLURM_JOB_ID:+slurm}:$seen in slurm: | *:NoDevFiles) return ;; esac
    [ -n "${SLURM_JOB_ID:-}" ] || [ "${SUBLET_GPUS:-}" != 0 ] || return 0
    case $("$libexec/condor_gpu_discovery" 2>/dev/null) in
        *=0* | '') ;;
        *) printf 'use FEATURE : GPUs\n'; return ;;
    esac
    [ -n "$seen" ] || return
    printf 'MACHINE_RESOURCE_GPUs ='
    for gpu in $(printf '%s' "$seen" | tr ',' ' '); do
        case $gpu in [0-9]*) printf ' CUDA%s' "$gpu" ;; *) printf ' %s' "$gpu" ;; esac
    done
    printf '\n'
}

containers() { # the lines for them; what Apptainer writes of its own stays here
    tool=$(command -v apptainer || command -v singularity) || return
    mkdir -p apptainer
    for name in CONFIGDIR CACHEDIR TMPDIR; do
        printf 'export APPTAINER_%s=%s SINGULARITY_%s=%s\n' "$name" "$dir/apptainer" "$name" "$dir/apptainer"
    done >container.part
    { printf '#!/bin/sh\n'; cat container.part; printf 'exec %s "$@"\n' "$tool"; } >container
    chmod 700 container
    rm -f container.part
    printf 'SINGULARITY = %s\n' "$dir/container"
    # Whether an image in one file can be run is tried with one that has nothing but directories.
    mkdir -p probe/bin probe/dev probe/etc probe/home probe/lib probe/lib64 probe/proc probe/sys probe/tmp probe/usr probe/var
    binds=/usr
    for place in /bin /lib /lib64; do [ -e "$place" ] && binds=$binds,$place; done
    ./container build probe.sif probe >/dev/null 2>&1 &&
        ./container exec --contain --no-home --bind "$binds" probe.sif /usr/bin/true >/dev/null 2>&1 &&
        printf 'HasSIF = True\nSTARTD_ATTRS = $(STARTD_ATTRS) HasSIF\n'
    chmod -R u+rwX probe && rm -rf probe probe.sif
}

outlive() { # lines for what must not end, or tell of an end, before HTCondor ends: a site signals all processes at once
    printf '#!/bin/sh\ntrap "" TERM\nexec %s "$@"\n' "$sbin/condor_procd" >procd
    chmod 700 procd
    printf 'PROCD = %s\n' "$dir/procd"
    perl=$(command -v perl) && "$perl" -MPOSIX -e 1 2>/dev/null || return 0
    { printf '#!%s\n' "$perl"; cat run_job.pl; } >run_job
    chmod 700 run_job
    chmod 700 check_job
    printf 'USER_JOB_WRAPPER = %s\n' "$dir/run_job"
    printf 'STARTER_DEFAULT_JOB_HOOK_KEYWORD = SUBLET\nSUBLET_HOOK_PREPARE_JOB = %s\n' "$dir/check_job"
}

configure() {
    printf 'RELEASE_DIR = %s\nBIN = %s\nSBIN = %s\nLIB = %s\nLIBEXEC = %s\n' "$root" "$root/bin" "$sbin" "$lib" "$libexec"
    printf 'NETWORK_HOSTNAME = %s\n' "$node"
    printf 'SHARE = %s\nNUM_CPUS = %s\nMEMORY = %s\nSubletEnd = %s\n' "$root/share/condor" "$cores" "$memory" "$end"
    printf 'SubletTools = "'
    for tool in $tools; do
        path=$(command -v "$tool") || continue
        [ "$tool" = python3 ] && ! "$path" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && continue
        printf '%s=%s ' "$tool" "$path"
    done
    printf '"\n'
    gpus
    containers
}

# Work

renew() { # ask from time to time what has changed; without an answer everything goes on as it is
    trap 'kill "$napping" 2>/dev/null; exit 0' TERM
    trap '' HUP INT
    while :; do
        sleep "$every" &
        napping=$!
        wait "$napping"
        tell renew "htcondor=$version ($from)"
        case $? in
            0)
                [ -s answer.renew ] || continue
                rm -rf new && mkdir new && (cd new && tar xf ../answer.renew) || continue
                cmp -s new/annex.conf annex.conf
                same=$?
                for file in new/tokens.d/* new/annex.conf new/stamp; do [ -f "$file" ] && mv "$file" "${file#new/}"; done
                [ "$same" = 0 ] || kill -s HUP "$master" 2>/dev/null # tokens are read whenever they are needed
                ;;
            2)
                printf '%s\n' "$words" >ending
                kill -s QUIT "$master" 2>/dev/null
                ;;
        esac
    done
}

unmet() { # words; what nodes can't send to the access point goes through the spool, unless that is not wanted
    [ "$SUBLET_CARRY" = direct ] && fail 83 "$1"
    tell split "why=$1" || fail 83 "$1"
    say "$1; its jobs come through the spool"
    trap - EXIT TERM INT HUP
    clean
    SUBLET_CARRY=spool SUBLET_NONCE=$nonce
    export SUBLET_CARRY SUBLET_NONCE
    exec sh "$SUBLET_START/node.sh"
}

far_half() { # this node reaches nothing: it takes jobs out of the spool
    python=$(command -v python3) || fail 87 "its nodes reach nothing, and have no python3 to take jobs out of the spool with"
    SUBLET_FAR_life=$((end - $(date +%s))) SUBLET_FAR_starter=$sbin/condor_starter
    SUBLET_FAR_FACT_cores=$cores SUBLET_FAR_FACT_memory=$memory SUBLET_FAR_FACT_machine=$node
    SUBLET_FAR_FACT_gpus=${CUDA_VISIBLE_DEVICES:-}
    SUBLET_FAR_FACT_tools=$(sed -n 's/^SubletTools = "\(.*\)"$/\1/p' node.conf)
    SUBLET_FAR_FACT_containers=$(grep -q '^HasSIF = True' node.conf && echo yes)
    export SUBLET_FAR_life SUBLET_FAR_starter SUBLET_FAR_FACT_cores SUBLET_FAR_FACT_memory SUBLET_FAR_FACT_machine
    export SUBLET_FAR_FACT_gpus SUBLET_FAR_FACT_tools SUBLET_FAR_FACT_containers
    quit=TERM
    chmod 700 in_sandbox
    "$python" far.py </dev/null &
    master=$!
    while :; do
        wait "$master"
        code=$?
        kill -0 "$master" 2>/dev/null || break
    done
    [ "$code" = 0 ] || say "its far half ended by itself ($code)"
    end_jobs jobs
}

end_jobs() { # where they are; HTCondor, or a far half, that was killed can't stop its jobs, which wait again elsewhere
    tries=20
    while [ "$tries" -gt 0 ] && pids=$(left_running "$dir/$1/") && [ -n "$pids" ]; do
        kill -s KILL $pids 2>/dev/null
        sleep 0.1
        tries=$((tries - 1))
    done
}

left_running() { # the processes of jobs, known by where they are; not this shell
    grep -lsF "$1" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do printf '%s ' "$pid"; done
    for pid in /proc/[0-9]*; do
        case $(readlink "$pid/cwd") in "$1"*) printf '%s ' "${pid#/proc/}" ;; esac
    done
}

ended() { # why HTCondor ended, in words
    [ -s ending ] && { cat ending; return; }
    [ -n "$why" ] && { printf '%s' "$why"; return; }
    [ "$(date +%s)" -ge "$end" ] && { printf 'its lifetime was over'; return; }
    grep -q 'No resources have been claimed for' log/StartLog 2>/dev/null && {
        grep -q '^SubletDraining = True' annex.conf && { printf 'it was drained'; return; }
    }
    grep -q 'No resources have been claimed for' log/StartLog 2>/dev/null && { printf 'it was idle for too long'; return; }
    grep -q 'Got SIG[QT]' log/MasterLog 2>/dev/null && { printf 'its owner shut it down'; return; } # an order comes as one
    return 1
}

find_condor
measure
mkdir -p log spool execute lock run etc credentials
chmod 755 execute
configure >node.conf
if [ "$carry" = spool ]; then
    far_half
    exit "$code"
fi
outlive >>node.conf
chmod 700 fetch_kept fetch_web
[ -d "${SUBLET_KEPT%/kept}/sessions/$session" ] || session= # nothing there would say who needs what is kept
printf '%s\n' "$libexec/curl_plugin" "$SUBLET_KEPT" "$session" >web.values
said=$("$root/bin/condor_ping" -address "<$collector>" -quiet ADVERTISE_STARTD 2>&1) ||
    unmet "the access point at $collector can't be reached: $(printf '%s' "$said" | tr '\n' ' ' | cut -c 1-300)"
"$sbin/condor_master" -f </dev/null >log/start 2>&1 &
master=$!
renew &
renewing=$!
while :; do
    wait "$master"
    code=$?
    kill -0 "$master" 2>/dev/null || break
done
end_jobs execute
words=$(ended)
known=$?
for file in start MasterLog StartLog; do
    [ -s "log/$file" ] && printf '==> %s on %s: %s <==\n' "$number" "$node" "$file" && tail -n 100 "log/$file"
done
rm -rf execute spool
[ "$known" = 0 ] || fail 86 "HTCondor ended by itself ($code)"
say "$words"
tell end "why=$words" || :
exit 0
