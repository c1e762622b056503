"""A real Grid Engine of one node, or of two: its master, its execution daemons, and a person who may use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.boxes import NEWER_SUITE, have_box
from tests.engines.machines import PERSON, EngineMachine, start_machine, wire

PACKAGES = ("gridengine-master", "gridengine-exec", "gridengine-client", "condor")
BEFORE = "echo gridengine-master shared/gridengineconfig boolean false | debconf-set-selections"
SLOTS = 4
START = """
rm -rf /var/spool/gridengine/spooldb/*
init=/usr/share/gridengine/scripts/init_cluster
su -s /bin/sh -c "$init /var/lib/gridengine default /var/spool/gridengine/spooldb sgeadmin" sgeadmin >/tmp/init.log 2>&1
host=$(hostname)
echo $host >/var/lib/gridengine/default/common/act_qmaster
chown sgeadmin /var/lib/gridengine/default/common/act_qmaster
export SGE_ROOT=/var/lib/gridengine SGE_CELL=default
SGE_MASTER_PIDFILE=/run/q.pid /usr/sbin/sge_qmaster
for i in $(seq 200); do qconf -sh >/dev/null 2>&1 && break; sleep 0.1; done
cd /tmp
qconf -am root || :
qconf -as $host
for name in load_scaling user_lists xuser_lists projects xprojects usage_scaling report_variables; do
    echo "$name NONE"
done >host
printf 'hostname %s\\ncomplex_values h_vmem=3G,gpu=2,scratch=20G\\n' $host >>host
qconf -sc | sed 's/^h_vmem .*/h_vmem h_vmem MEMORY <= YES YES 0 0/' >complexes
echo 'gpu gpu INT <= YES YES 0 0' >>complexes
echo 'scratch scratch MEMORY <= YES YES 0 0' >>complexes
qconf -Mc complexes
qconf -Ae host
printf 'group_name @allhosts\\nhostlist %s\\n' $host >group
qconf -Ahgrp group
cat >environment <<X
pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule \\$pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
X
qconf -Ap environment
{
    printf 'qname all.q\\nhostlist @allhosts\\nseq_no 0\\nnsuspend 1\\nsuspend_interval 00:05:00\\npriority 0\\n'
    printf 'min_cpu_interval 00:05:00\\nprocessors UNDEFINED\\nqtype BATCH INTERACTIVE\\npe_list smp\\nrerun FALSE\\n'
    printf 'slots {slots}\\ntmpdir /tmp\\nshell /bin/sh\\nshell_start_mode unix_behavior\\nnotify 00:00:60\\n'
    printf 'initial_state default\\n'
    for name in load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method \\
        resume_method terminate_method owner_list user_lists xuser_lists subordinate_list complex_values \\
        projects xprojects calendar; do
        echo "$name NONE"
    done
    for name in rt cpu fsize data stack core rss vmem; do printf 's_%s INFINITY\\nh_%s INFINITY\\n' $name $name; done
} >queue
qconf -Aq queue
qconf -ssconf | sed 's/^schedule_interval.*/schedule_interval 0:0:2/; s/^flush_submit_sec.*/flush_submit_sec 1/
    s/^flush_finish_sec.*/flush_finish_sec 1/; s/^max_reservation.*/max_reservation 20/' >scheduling
qconf -Msconf scheduling
qconf -sconf | sed '1d; s/flush_time=00:00:15/flush_time=00:00:00 accounting_flush_time=00:00:00/' >global
qconf -Mconf global
{reserving}
/usr/sbin/sge_execd
for i in $(seq 150); do qstat -f | grep -q "all.q@$host.*lx" && exit 0; sleep 0.2; done
qstat -f >&2
exit 1
"""
LET_RESERVE = f"qconf -au {PERSON} arusers"


@contextmanager
def serve_gridengine(place: Path, *, lets_reserve: bool = True) -> Iterator[EngineMachine]:
    """A site with Grid Engine, which is gone afterwards."""
    box = have_box("gridengine", PACKAGES, BEFORE, NEWER_SUITE)
    with start_machine("gridengine", box, place) as machine:
        script = START.replace("{slots}", str(SLOTS)).replace("{reserving}", LET_RESERVE if lets_reserve else "")
        machine.run_script(script)
        machine.run_script(PROFILE)
        yield machine


PROFILE = "echo 'export SGE_ROOT=/var/lib/gridengine' >/etc/profile.d/sge.sh"
COMMON = "/var/lib/gridengine/default/common"
SECOND = """
export SGE_ROOT=/var/lib/gridengine SGE_CELL=default
cd /tmp
qconf -ah {second}
qconf -sp smp | sed 's/^pe_name.*/pe_name pair/; s/^allocation_rule.*/allocation_rule 2/
    s/^control_slaves.*/control_slaves TRUE/' >pair
qconf -Ap pair
qconf -aattr queue pe_list pair all.q
sed 's/^hostname .*/hostname {second}/' host >host2
qconf -Ae host2
qconf -aattr hostgroup hostlist {second} @allhosts
"""
JOIN = """
mkdir -p {common} /var/spool/gridengine/execd
tar -x -C {common} -f {shared}/common.tar
chown -R sgeadmin: /var/lib/gridengine/default /var/spool/gridengine
SGE_ROOT=/var/lib/gridengine SGE_CELL=default /usr/sbin/sge_execd
"""
SHARED = "/shared"


@contextmanager
def serve_two_nodes(place: Path) -> Iterator[tuple[EngineMachine, EngineMachine]]:
    """A site of two machines, of which a job can have both; its person's directory `/shared` is on both."""
    place.mkdir(parents=True)
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    box, mounts = have_box("gridengine", PACKAGES, BEFORE, NEWER_SUITE), {shared: SHARED}
    with (
        start_machine("gridengine", box, place / "first", mounts=mounts) as first,
        start_machine("gridnode2", box, place / "second", mounts=mounts) as second,
        wire(first, second) as (near, far),
    ):
        for machine in (first, second):
            machine.run_script(f"printf '{near} {first.name}\\n{far} {second.name}\\n' >>/etc/hosts; {PROFILE}")
        first.run_script(START.replace("{slots}", str(SLOTS)).replace("{reserving}", LET_RESERVE))
        first.run_script(SECOND.replace("{second}", second.name) + f"tar -c -C {COMMON} -f {SHARED}/common.tar .")
        second.run_script(JOIN.replace("{common}", COMMON).replace("{shared}", SHARED))
        seen = f"qstat -f | grep -q 'all.q@{second.name}.*lx' && exit 0"
        first.run_as_person(f"for i in $(seq 150); do {seen}; sleep 0.2; done; qstat -f; exit 1")
        yield first, second
