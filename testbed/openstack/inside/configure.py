"""configure.py ADDRESS: write the configuration of every service."""

import shutil
import sys
from pathlib import Path

ETC, LOG, STATE = Path("/cloud/etc"), "/cloud/log", "/cloud/state"
SOCKET = "unix_socket=/run/mariadb.sock"
address = sys.argv[1]


def sign_in(user: str) -> str:
    """How a service signs in to Keystone."""
    return f"""auth_type = password
auth_url = http://127.0.0.1:5000/v3
username = {user}
password = secret
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = here
valid_interfaces = internal
"""


def check_tokens(user: str) -> str:
    """How a service checks the tokens that it is shown."""
    return (
        f"[keystone_authtoken]\nwww_authenticate_uri = http://127.0.0.1:5000/v3\ninterface = internal\n{sign_in(user)}"
    )


PRIVILEGES = "".join(
    f"[{section}]\nhelper_command = /usr/bin/privsep-helper --config-file {ETC}/neutron.conf "
    f"--config-file {ETC}/l3_agent.ini\n"
    for section in ("privsep", "privsep_namespace", "privsep_conntrack", "privsep_link")
)
FILES = {
    "keystone.conf": f"""[DEFAULT]
log_file = {LOG}/keystone.log
[database]
connection = sqlite:///{STATE}/keystone.db
[fernet_tokens]
key_repository = {STATE}/fernet
[credential]
key_repository = {STATE}/credentials
[identity]
password_hash_rounds = 4
[cache]
enabled = false
""",
    "placement.conf": f"""[DEFAULT]
log_file = {LOG}/placement.log
[placement_database]
connection = sqlite:///{STATE}/placement.db
[api]
auth_strategy = keystone
{check_tokens("placement")}
""",
    "glance-api.conf": f"""[DEFAULT]
log_file = {LOG}/glance.log
enabled_backends = here:file
use_keystone_limits = false
[database]
connection = sqlite:///{STATE}/glance.db
[glance_store]
default_backend = here
[here]
filesystem_store_datadir = {STATE}/images
[os_glance_staging_store]
filesystem_store_datadir = {STATE}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {STATE}/tasks
[image_format]
require_image_format_match = false
[paste_deploy]
flavor = keystone
config_file = /etc/glance/glance-api-paste.ini
{check_tokens("glance")}
""",
    "neutron.conf": f"""[DEFAULT]
log_dir = {LOG}
state_path = {STATE}/neutron
core_plugin = ml2
service_plugins = router
auth_strategy = keystone
transport_url = rabbit://guest:guest@127.0.0.1:5672/
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
api_paste_config = /etc/neutron/api-paste.ini
rpc_workers = 1
rpc_state_report_workers = 0
rpc_response_timeout = 20
host = cloud
[database]
connection = mysql+pymysql://root@localhost/neutron?{SOCKET}
[ml2]
type_drivers = local
tenant_network_types = local
mechanism_drivers = wires
[oslo_concurrency]
lock_path = {STATE}/neutron/lock
{check_tokens("neutron")}
""",
    "l3_agent.ini": f"""[DEFAULT]
interface_driver = sublet_router_wires.RouterWires
enable_metadata_proxy = false
[agent]
root_helper = env
report_interval = 5
{PRIVILEGES}""",
    "nova.conf": f"""[DEFAULT]
log_dir = {LOG}
state_path = {STATE}/nova
host = cloud
my_ip = 127.0.0.1
transport_url = rabbit://guest:guest@127.0.0.1:5672/
compute_driver = libvirt.LibvirtDriver
instances_path = {STATE}/instances
shutdown_timeout = 30
reserved_host_memory_mb = 0
reserved_host_disk_mb = 0
initial_cpu_allocation_ratio = 8.0
initial_ram_allocation_ratio = 2.0
initial_disk_allocation_ratio = 16.0
heal_instance_info_cache_interval = 0
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
[api_database]
connection = mysql+pymysql://root@localhost/nova_api?{SOCKET}
[database]
connection = mysql+pymysql://root@localhost/nova?{SOCKET}
[oslo_concurrency]
lock_path = {STATE}/nova/lock
[glance]
{sign_in("nova")}
[placement]
{sign_in("nova")}
[neutron]
{sign_in("nova")}
[service_user]
send_service_user_token = true
{sign_in("nova")}
[vnc]
enabled = false
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 2
[libvirt]
virt_type = {"kvm" if Path("/dev/kvm").exists() else "qemu"}
cpu_mode = none
[nova_sys_admin]
helper_command = /usr/bin/privsep-helper --config-file {ETC}/nova.conf
{check_tokens("nova")}service_token_roles_required = true
""",
}
for name, text in FILES.items():
    (ETC / name).write_text(text)
for name in ("images", "staging", "tasks", "fernet", "credentials", "nova/lock", "neutron/lock", "instances"):
    Path(STATE, name).mkdir(parents=True, exist_ok=True)
shutil.copy("/etc/nova/api-paste.ini", ETC)
packages = Path("/usr/lib/python3/dist-packages")
for name in ("wires", "router_wires"):
    shutil.copy(f"/cloud/programs/{name}.py", packages / f"sublet_{name}.py")
described = packages / "sublet_wires-1.dist-info"
described.mkdir()
(described / "METADATA").write_text("Metadata-Version: 2.1\nName: sublet-wires\nVersion: 1\n")
(described / "entry_points.txt").write_text("[neutron.ml2.mechanism_drivers]\nwires = sublet_wires:Wires\n")
