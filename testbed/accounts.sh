# Before slurmctld starts: the accounting database, slurmdbd, and who may use which account and quality of service.
set -eu
chown mysql:mysql /run/mysqld /run/mariadbd
[ -d /var/lib/mysql/mysql ] || mariadb-install-db --user=mysql --skip-test-db >/dev/null
mariadbd --user=mysql --skip-networking --skip-log-bin --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 \
    >/var/log/site/mariadbd.log 2>&1 &
patiently() { # a command that fails until its server is up
    for _ in $(seq 400); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.05
    done
    "$@"
}
patiently mariadb -e "create database if not exists slurm_acct_db; create user if not exists slurm@localhost identified by ''; grant all on slurm_acct_db.* to slurm@localhost"
slurmdbd
cluster=$(sed -n 's/^ClusterName=//p' /etc/slurm/slurm.conf)
patiently sacctmgr -i list cluster
if [ -z "$(sacctmgr -nP list cluster "$cluster")" ]; then
    sacctmgr -iQ add cluster "$cluster"
    sacctmgr -iQ add qos short set maxwall=00:30:00 priority=100 flags=denyonlimit
    sacctmgr -iQ add qos small set maxtrespu=cpu=12 priority=10
    sacctmgr -iQ add account alpha,beta cluster="$cluster" description=project organization=testbed
    sacctmgr -iQ modify account beta set grptresmins=cpu=600
    sacctmgr -iQ add user researcher,keyholder,service account=alpha defaultaccount=alpha qos=normal,short,small defaultqos=normal
    sacctmgr -iQ add user researcher account=beta qos=normal
fi
