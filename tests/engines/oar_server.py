"""A real OAR of two nodes on one machine, as a site has it: its server, its database, and a person who may use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.boxes import NEWER_SUITE, SUITE, have_box
from tests.engines.machines import PERSON, EngineMachine, start_machine

PACKAGES = (
    *("oar-server", "oar-server-pgsql", "oar-node", "oar-user", "oar-user-pgsql"),
    *("postgresql", "taktuk", "sudo", "libjson-perl", "libyaml-perl", "libxml-simple-perl"),
)
NODES, CORES, MEMORY = ("c1", "c2"), 2, 2048  # MiB
START = """
mkdir -p /run/postgresql /run/oar
chown postgres /run/postgresql
chown oar /run/oar
touch /var/log/oar.log
chown oar /var/log/oar.log
version=$(ls /usr/lib/postgresql)
[ -d /var/lib/postgresql/$version/main ] || pg_createcluster $version main >/dev/null
printf 'fsync=off\\nsynchronous_commit=off\\n' >>/etc/postgresql/$version/main/postgresql.conf
pg_ctlcluster $version main start
for i in $(seq 100); do su postgres -c 'psql -qc "select 1"' >/dev/null 2>&1 && break; sleep 0.1; done
sed -i 's/^DB_TYPE=.*/DB_TYPE="Pg"/; s/^DB_HOSTNAME=.*/DB_HOSTNAME="127.0.0.1"/; s/^DB_PORT=.*/DB_PORT="5432"/
    s/^DB_BASE_PASSWD=.*/DB_BASE_PASSWD="oar"/; s/^DB_BASE_LOGIN=.*/DB_BASE_LOGIN="oar"/
    s/^DB_BASE_PASSWD_RO=.*/DB_BASE_PASSWD_RO="ro"/; s/^DB_BASE_LOGIN_RO=.*/DB_BASE_LOGIN_RO="oar_ro"/
    s/^SERVER_HOSTNAME=.*/SERVER_HOSTNAME="127.0.0.1"/; s/^JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD/#&/
    s/^#*SCHEDULER_MIN_TIME_BETWEEN_2_CALLS=.*/SCHEDULER_MIN_TIME_BETWEEN_2_CALLS=1/
    s/^SCHEDULER_JOB_SECURITY_TIME=.*/SCHEDULER_JOB_SECURITY_TIME="1"/
    s/^#*LOG_FILE=.*/LOG_FILE="\\/var\\/log\\/oar.log"/' /etc/oar/oar.conf
command -v renice >/dev/null || ln -s true /usr/bin/renice # newer systems have it elsewhere
oar-database --create --db-is-local >/dev/null
/usr/sbin/sshd -f /etc/oar/sshd_config
for host in {nodes}; do su oar -s /bin/sh -c "ssh -p 6667 -o StrictHostKeyChecking=no -o BatchMode=yes $host true"; done
cd /
setsid /usr/sbin/oar-server </dev/null >/var/log/almighty.log 2>&1 &
for i in $(seq 100); do (: </dev/tcp/127.0.0.1/6666) 2>/dev/null && break; sleep 0.1; done
for property in cpu core memnode; do oarproperty -a $property >/dev/null; done
number=0
for host in {nodes}; do
    for core in $(seq {cores}); do
        number=$((number + 1))
        oarnodesetting -a -h $host -p core=$number -p cpu=$number -p memnode={memory} >/dev/null
    done
done
for i in $(seq 60); do [ "$(oarnodes -s | grep -c Alive)" -ge {resources} ] && exit 0; sleep 0.3; done
oarnodes -s >&2
exit 1
"""

BETWEEN_NODES = """
cd ~/.ssh
ssh-keygen -q -t ed25519 -N '' -f id_ed25519
cat id_ed25519.pub >>authorized_keys
for host in {nodes}; do echo "$host $(cat /etc/ssh/ssh_host_ed25519_key.pub)"; done >known_hosts
"""  # without cpusets oarsh gets nowhere, and sites let people use ssh


@contextmanager
def serve_oar(place: Path, *, has_condor: bool = False) -> Iterator[EngineMachine]:
    """A site with OAR, which is gone afterwards; with HTCondor it is a newer OAR."""
    packages, suite = ((*PACKAGES, "condor"), NEWER_SUITE) if has_condor else (PACKAGES, SUITE)
    box = have_box("oar", packages, suite=suite)
    with start_machine("oar", box, place, NODES) as machine:
        script = START.replace("{nodes}", " ".join(NODES)).replace("{cores}", str(CORES))
        resources = str(len(NODES) * CORES)
        machine.run_script(script.replace("{memory}", str(MEMORY)).replace("{resources}", resources))
        machine.run("runuser", "-l", PERSON, "-c", BETWEEN_NODES.replace("{nodes}", " ".join(NODES)))
        yield machine
