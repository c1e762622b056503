"""Ports where no agent plugs them: each is bound as a tap device, and it is noted which bridge it belongs on.

start.sh puts the devices of guests there, and `router_wires.py` those of routers.
"""

from pathlib import Path

from neutron_lib.plugins.ml2 import api

NOTES = Path("/run/wires")
INNER = "inner"  # the network, and the bridge, that this machine is not on


def find_bridge(port):
    """The bridge of a port, by its id."""
    return (NOTES / f"tap{port[:11]}").read_text()


class Wires(api.MechanismDriver):
    """Every port, on every network."""

    def initialize(self):
        """Have a place for notes."""
        NOTES.mkdir(exist_ok=True)

    def bind_port(self, context):
        """By the first segment that there is."""
        segment = context.segments_to_bind[0]
        bridge = INNER if context.network.current["name"] == INNER else "guests"
        (NOTES / f"tap{context.current['id'][:11]}").write_text(bridge)
        context.set_binding(segment[api.ID], "tap", {"port_filter": False}, status="ACTIVE")
