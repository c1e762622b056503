"""prepare.py users|project ADDRESS: people, services, sizes and images of the cloud, by its own API."""

import json
import sys
import time
import urllib.request
from pathlib import Path

stage, address = sys.argv[1:]
LOCAL = "http://127.0.0.1"
PORTS = {"placement": 8778, "image": 9292, "compute": 8774, "network": 9696}
NAMES = {"placement": "placement", "image": "glance", "compute": "nova", "network": "neutron"}
PEOPLE = {"alice": "member", "bob": "reader"}
FLAVORS = {
    "tiny": (1, 320, 1),
    "small": (1, 512, 1),
    "wide": (4, 512, 1),
    "huge": (1, 50_000, 1),
    "roomy": (2, 2048, 6),
}
GUEST = Path("/cloud/guest")
token = ""


def call(method, address, body=None, kind="application/json"):
    """One call as the administrator; the answer, and its headers."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    headers = {"X-Auth-Token": token, "Content-Type": kind, "OpenStack-API-Version": "compute 2.60"}
    request = urllib.request.Request(address, content, headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read()
        return (json.loads(text) if text.strip() else {}), answer.headers


def sign_in():
    """A token of the administrator's."""
    user = {"name": "admin", "domain": {"id": "default"}, "password": "secret"}
    scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
    auth = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
    return call("POST", f"{LOCAL}:5000/v3/auth/tokens", {"auth": auth})[1]["X-Subject-Token"]


def identity(method, path, body=None):
    """A call to Keystone."""
    return call(method, f"{LOCAL}:5000/v3/{path}", body)[0]


def add_user(name, project, roles):
    """Someone with roles in a project."""
    user = identity("POST", "users", {"user": {"name": name, "password": "secret", "domain_id": "default"}})["user"]
    for role in roles:
        identity("PUT", f"projects/{project}/users/{user['id']}/roles/{known[role]}")


def add_image(name, file, **more):
    """An image that everybody may use."""
    made, _ = call("POST", f"{LOCAL}:9292/v2/images", {"name": name, "visibility": "public", **more})
    content = file.read_bytes() if file else b"\0" * (1 << 20)
    call("PUT", f"{LOCAL}:9292/v2/images/{made['id']}/file", content, "application/octet-stream")
    return made["id"]


def wait_for(address, noun):
    """Wait until something is listed there."""
    until = time.monotonic() + 300
    while not call("GET", address)[0][noun]:
        if time.monotonic() > until:
            sys.exit(f"no {noun} have come")
        time.sleep(0.5)


def neutron(path, **body):
    """Have something in Neutron; it, as it was made."""
    (noun,) = body
    return call("POST", f"{LOCAL}:9696/v2.0/{path}", body)[0][noun]


def add_network(name, net, first, last, gateway=None, **more):
    """A network, with the subnet that it has; guests read their addresses from the config drive."""
    network = neutron("networks", network={"name": name, **more})
    made, whose = network["id"], network["project_id"]  # a subnet of someone else's gives its people no addresses
    pool = {"start": f"{net}.{first}", "end": f"{net}.{last}"}
    addresses = {"ip_version": 4, "cidr": f"{net}.0/24", "allocation_pools": [pool], "gateway_ip": gateway}
    subnet = {"network_id": made, "project_id": whose, "enable_dhcp": False, **addresses}
    return made, neutron("subnets", subnet=subnet)["id"]


def add_networks(net):
    """One that this machine is on too; one of a project's own, and a router from it to floating IPs here."""
    add_network("wire", net, 10, 199, shared=True)
    public, _ = add_network("public", net, 200, 250, f"{net}.1", **{"router:external": True})
    listed = identity("GET", "projects?name=sky")["projects"]
    own = {"project_id": listed[0]["id"]}
    _, inside = add_network("inner", "10.206.0", 10, 250, "10.206.0.1", **own)
    gateway = {"external_gateway_info": {"network_id": public}}
    router = neutron("routers", router={"name": "way-out", **own, **gateway})["id"]
    call("PUT", f"{LOCAL}:9696/v2.0/routers/{router}/add_router_interface", {"subnet_id": inside})


token = sign_in()
known = {role["name"]: role["id"] for role in identity("GET", "roles")["roles"]}
if stage == "users":
    service = identity("POST", "projects", {"project": {"name": "service", "domain_id": "default"}})["project"]["id"]
    for kind, port in PORTS.items():
        add_user(NAMES[kind], service, ("admin", "service"))
        made = identity("POST", "services", {"service": {"name": NAMES[kind], "type": kind}})["service"]["id"]
        path = "/v2.1" if kind == "compute" else ""
        for interface, place in (("internal", LOCAL), ("public", f"https://{address}")):
            endpoint = {"service_id": made, "interface": interface, "region_id": "here", "url": f"{place}:{port}{path}"}
            identity("POST", "endpoints", {"endpoint": endpoint})
    project = identity("POST", "projects", {"project": {"name": "sky", "domain_id": "default"}})["project"]["id"]
    for person, role in PEOPLE.items():
        add_user(person, project, (role,))
else:
    kernel = add_image("kernel", GUEST / "kernel", disk_format="aki", container_format="aki")
    ramdisk = add_image("ramdisk", GUEST / "ramdisk", disk_format="ari", container_format="ari")
    add_image(
        "guest",
        None,
        disk_format="ami",
        container_format="ami",
        kernel_id=kernel,
        ramdisk_id=ramdisk,
        os_command_line="console=ttyS0 quiet panic=-1",
    )
    wait_for(f"{LOCAL}:9696/v2.0/agents?agent_type=L3%20agent", "agents")
    add_networks(address.rpartition(".")[0])
    nova = f"{LOCAL}:8774/v2.1"
    for name, (cores, memory, disk) in FLAVORS.items():
        call("POST", f"{nova}/flavors", {"flavor": {"name": name, "vcpus": cores, "ram": memory, "disk": disk}})
    wait_for(f"{nova}/os-hypervisors", "hypervisors")
