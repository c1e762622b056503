# Runs in the cloud's machine: MariaDB, RabbitMQ, libvirt, and OpenStack's services.   start.sh ADDRESS
set -euo pipefail
address=$1 log=/cloud/log programs=/cloud/programs etc=/cloud/etc
mkdir -p $etc /cloud/state /var/run/mysqld
ip link add inner type bridge # for guests that this machine does not reach by itself
ip link set inner up
mount -t tmpfs -o size=12g tmpfs /cloud/state # no overlay below databases and disks; disks are sparse
openssl req -x509 -newkey rsa:2048 -nodes -keyout $etc/key.pem -out $log/ca.pem -days 30 -subj /CN=cloud \
    -addext "subjectAltName=IP:$address" 2>/dev/null
python3 $programs/configure.py "$address"

as() { # LOG WORD…: runs in the background
    local name=$1
    shift
    "$@" >"$log/$name.log" 2>&1 &
}
must() { # LOG WORD…: must succeed
    local name=$1
    shift
    "$@" >>"$log/$name.log" 2>&1 || { echo "$* failed"; tail -n 5 "$log/$name.log"; exit 1; }
}

mkdir -p /cloud/state/rabbit
chown -R rabbitmq /var/log/rabbitmq /var/lib/rabbitmq /cloud/state/rabbit
export RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=5672 RABBITMQ_NODENAME=rabbit@localhost ERL_EPMD_ADDRESS=127.0.0.1
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+sbwt none +sbwtdcpu none +sbwtdio none +S 1:1" RABBITMQ_MNESIA_BASE=/cloud/state/rabbit
as rabbit runuser -u rabbitmq -- env HOME=/var/lib/rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server

must mariadb mariadb-install-db --no-defaults --datadir=/cloud/state/mariadb --auth-root-authentication-method=normal --skip-test-db --user=root
as mariadb mariadbd --no-defaults --datadir=/cloud/state/mariadb --socket=/run/mariadb.sock --skip-networking --user=root \
    --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=64M --skip-log-bin --performance-schema=0
until mariadb --no-defaults -uroot -S/run/mariadb.sock -e 'select 1' >/dev/null 2>&1; do sleep 0.1; done
mariadb --no-defaults -uroot -S/run/mariadb.sock -e 'create database nova_api; create database nova; create database nova_cell0; create database neutron'

sync_identity() {
    must keystone keystone-manage --config-file $etc/keystone.conf db_sync
    must keystone keystone-manage --config-file $etc/keystone.conf fernet_setup --keystone-user root --keystone-group root
    must keystone keystone-manage --config-file $etc/keystone.conf credential_setup --keystone-user root --keystone-group root
    must keystone keystone-manage --config-file $etc/keystone.conf bootstrap --bootstrap-password secret --bootstrap-region-id here \
        --bootstrap-public-url "https://$address:5000/v3" --bootstrap-internal-url http://127.0.0.1:5000/v3
    must placement placement-manage --config-file $etc/placement.conf db sync
    must glance glance-manage --config-file $etc/glance-api.conf db_sync
}
sync_compute() {
    must nova nova-manage --config-file $etc/nova.conf api_db sync
    must nova nova-manage --config-file $etc/nova.conf cell_v2 map_cell0 \
        --database_connection 'mysql+pymysql://root@localhost/nova_cell0?unix_socket=/run/mariadb.sock'
    must nova nova-manage --config-file $etc/nova.conf cell_v2 create_cell --name cell1
    must nova nova-manage --config-file $etc/nova.conf db sync
}
sync_identity &
first=$!
sync_compute &
second=$!
must neutron neutron-db-manage --config-file $etc/neutron.conf upgrade head
wait $first
wait $second

export OS_KEYSTONE_CONFIG_FILES=$etc/keystone.conf OS_PLACEMENT_CONFIG_DIR=$etc OS_GLANCE_CONFIG_DIR=$etc OS_GLANCE_CONFIG_FILES=glance-api.conf
export OS_NOVA_CONFIG_DIR=$etc OS_NEUTRON_CONFIG_DIR=$etc OS_NEUTRON_CONFIG_FILES=neutron.conf
serve() { as "$1-api" python3 $programs/serve.py "$2" "$3" "$address" $log/ca.pem $etc/key.pem; }
answers() { curl -s -o /dev/null -m 20 "http://127.0.0.1:$1/"; }
serve keystone keystone.wsgi.api 5000
until answers 5000; do sleep 0.2; done
python3 $programs/prepare.py users "$address"
serve placement placement.wsgi.api 8778
serve glance glance.wsgi.api 9292
serve neutron neutron.wsgi.api 9696

mkdir -p /run/libvirt /cloud/state/instances
printf 'user = "root"\ngroup = "root"\nsecurity_driver = "none"\ncgroup_controllers = [ ]\nnamespaces = [ ]\nremember_owner = 0\n' >/etc/libvirt/qemu.conf
printf 'log_outputs="3:file:%s/libvirt.log"\nhost_uuid="6e0d2b0e-7f0a-4e3b-9d3a-000000000077"\n' $log >/etc/libvirt/libvirtd.conf
virtlogd -d
libvirtd -d
until (: </dev/tcp/127.0.0.1/5672) 2>/dev/null; do sleep 0.2; done
hears() { # QUEUE: whether someone takes messages there
    python3 -c 'import amqp, sys
with amqp.Connection("127.0.0.1:5672", "guest", "guest") as rabbit: rabbit.channel().queue_declare(sys.argv[1], passive=True)' "$1" 2>/dev/null
}
as neutron-rpc neutron-rpc-server --config-file $etc/neutron.conf
as nova-conductor nova-conductor --config-file $etc/nova.conf
as nova-scheduler nova-scheduler --config-file $etc/nova.conf
serve nova nova.wsgi.osapi_compute 8774
for port in 8778 9292 9696 8774; do until answers $port; do sleep 0.2; done; done
as wires bash -c 'while sleep 0.2; do for tap in /sys/class/net/tap*; do
    [ -e "$tap" ] && [ ! -e "$tap/master" ] && ip link set "${tap##*/}" master "$(cat /run/wires/${tap##*/})" up; done; done'
until hears q-l3-plugin; do sleep 0.5; done # an agent that calls nobody waits for a minute
as neutron-l3 neutron-l3-agent --config-file $etc/neutron.conf --config-file $etc/l3_agent.ini
as nova-compute nova-compute --config-file $etc/nova.conf
python3 $programs/prepare.py project "$address"
touch $log/ready
wait
