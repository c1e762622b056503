"""Ports of routers, for Neutron's L3 agent where no Open vSwitch is: a pair of devices, one end on a bridge."""

import subprocess

from neutron.agent.linux import interface, ip_lib
from sublet_wires import find_bridge


class RouterWires(interface.LinuxInterfaceDriver):
    """What the L3 agent calls to have a router's port, and to be rid of it."""

    DEV_NAME_PREFIX = "ns-"

    def plug_new(
        self,
        network_id,
        port_id,
        device_name,
        mac_address,
        bridge=None,
        namespace=None,
        prefix=None,
        mtu=None,
        link_up=True,
    ):
        """One end in the router's namespace, under the name that the agent wants."""
        outer, inner = ip_lib.IPWrapper().add_veth(f"r{port_id[:11]}", device_name, namespace2=namespace)
        inner.link.set_address(mac_address)
        if mtu:
            outer.link.set_mtu(mtu)
            inner.link.set_mtu(mtu)
        subprocess.run(["ip", "link", "set", outer.name, "master", find_bridge(port_id), "up"], check=True)
        if link_up:
            inner.link.set_up()

    def unplug(self, device_name, bridge=None, namespace=None, prefix=None):
        """Its other end goes with it."""
        ip_lib.IPDevice(device_name, namespace=namespace).link.delete()
