"""The addresses that the name of a web server with logs may lead to."""

from collections.abc import Sequence
from ipaddress import ip_address

from service.internet_addresses import Network, inside, is_public

Networks = Sequence[Network]
# Metadata of virtual machines of AWS by IPv6: inside a private range (fc00::/7) that log servers are in as well.
_METADATA = ip_address("fd00:ec2::254")
_THIS_MACHINE = "localhost"  # names of loopback addresses, by RFC 6761, section 6.3


def is_allowed(host: str, address: str, networks: Networks) -> bool:
    """Whether a connection to an address is allowed.

    Whoever answers for the name may change its address at any time. A public address is allowed, another one only in a
    network that the settings list, or if the name itself says that it is this machine. A network that contains an
    address of metadata allows it only if it is that address alone.

    Args:
        host: the name in the URL.
        address: one of its addresses, as resolved for this connection.
        networks: the networks of the administrator.
    """
    found = ip_address(address.partition("%")[0])
    if found == _METADATA:
        networks = [network for network in networks if network.num_addresses == 1]
    if is_public(found) or any(inside(found, network) for network in networks):
        return True
    name = host.lower().rstrip(".")
    return found.is_loopback and (name == _THIS_MACHINE or name.endswith(f".{_THIS_MACHINE}"))
