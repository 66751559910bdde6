"""The addresses that deliveries may use: public ones, and internal ones in networks that the administrator lists."""

import ipaddress
import socket
from collections.abc import Callable, Sequence

from service.internet_addresses import Network, inside, is_public

Resolve = Callable[[str, int], Sequence[str]]


class Refused(Exception):
    """The name has no permitted address; the message names those it has."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, from the system's resolver.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def permitted(host: str, port: int, allow: Sequence[Network], *, plain: bool = False, lookup: Resolve = resolve) -> str:
    """The one address of `host` to connect to.

    Args:
        host: a name or an address.
        port: the port.
        allow: permitted internal networks.
        plain: without TLS, which is permitted for listed networks only.
        lookup: resolves the name, called once.

    Raises:
        Refused: none of its addresses is permitted.
        OSError: the name has no address.
    """
    found = lookup(host, port)
    for text in found:
        address = ipaddress.ip_address(text.partition("%")[0])
        if any(inside(address, network) for network in allow) or (not plain and is_public(address)):
            return text
    listed = ", ".join(found)
    if plain:
        raise Refused(f"http:// leads to {listed}, and only networks under [network] allow may do without TLS")
    raise Refused(f"{host} leads to {listed}: internal, and not in a network under [network] allow")
