"""VOSI 1.1: this service's capabilities and availability in IVOA's XML, for registries and other clients."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

VOSI = "http://www.ivoa.net/xml/VOSICapabilities/v1.0"
AVAILABILITY = "http://www.ivoa.net/xml/VOSIAvailability/v1.0"
DATA_SERVICE = "http://www.ivoa.net/xml/VODataService/v1.1"
VO_RESOURCE = "http://www.ivoa.net/xml/VOResource/v1.0"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
# Standard, path, and type of its interface.
CAPABILITIES = (
    ("ivo://ivoa.net/std/VOSI#capabilities", "/capabilities", "vs:ParamHTTP"),
    ("ivo://ivoa.net/std/VOSI#availability", "/availability", "vs:ParamHTTP"),
    ("ivo://ivoa.net/std/ExecutionBroker#execution-broker-1.0", "/requests", "vr:WebService"),
)
BEARER = "ivo://ivoa.net/sso#OAuth"
OPEN = frozenset({"/capabilities", "/availability"})  # available without a token

ElementTree.register_namespace("vosi", VOSI)
ElementTree.register_namespace("avail", AVAILABILITY)
ElementTree.register_namespace("xsi", INSTANCE)


def write_capabilities(base: str) -> bytes:
    """Return the capabilities document of a service at this address."""
    root = ElementTree.Element(f"{{{VOSI}}}capabilities", {"xmlns:vs": DATA_SERVICE, "xmlns:vr": VO_RESOURCE})
    for standard, path, kind in CAPABILITIES:
        capability = ElementTree.SubElement(root, "capability", {"standardID": standard})
        interface = ElementTree.SubElement(capability, "interface", {f"{{{INSTANCE}}}type": kind, "role": "std"})
        url = ElementTree.SubElement(interface, "accessURL", {"use": "full" if path in OPEN else "base"})
        url.text = f"{base}{path}"
        if path not in OPEN:
            ElementTree.SubElement(interface, "securityMethod", {"standardID": BEARER})
    return _write(root)


def write_availability(trouble: str, since: datetime | None) -> bytes:
    """Return the availability document of a service with this problem (empty: none) and start time."""
    root = ElementTree.Element(f"{{{AVAILABILITY}}}availability")
    available = ElementTree.SubElement(root, f"{{{AVAILABILITY}}}available")
    available.text = "false" if trouble else "true"
    if since:
        up = ElementTree.SubElement(root, f"{{{AVAILABILITY}}}upSince")
        up.text = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    note = ElementTree.SubElement(root, f"{{{AVAILABILITY}}}note")
    note.text = trouble or "accepting requests"
    return _write(root)


def _write(root: ElementTree.Element) -> bytes:
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written
