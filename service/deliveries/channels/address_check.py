"""Where deliveries may go: public addresses, and internal ones only where the administrator lists their network."""

import ipaddress
import socket
from collections.abc import Callable, Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

# IPv6 addresses that lead to an IPv4 one, by RFC 6052 (NAT64).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The name leads to no address that may be connected to; says which."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system gives them.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def permitted(host: str, port: int, allow: Sequence[Network], *, plain: bool = False, lookup: Resolve = resolve) -> str:
    """The one address of `host` to connect to.

    Args:
        host: a name or an address.
        port: where to.
        allow: internal networks that may be connected to.
        plain: without TLS, which only listed networks may be.
        lookup: asks for the name, once.

    Raises:
        Refused: none of its addresses may be connected to.
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


def inside(address: Address, network: Network) -> bool:
    """Whether an address, or the IPv4 one it stands for, lies in the network."""
    return any(one in network for one in _meanings(address) if one.version == network.version)


def is_public(address: Address) -> bool:
    """Whether an address, and each one that it stands for, is reachable by everybody."""
    return all(one.is_global and not one.is_multicast for one in _meanings(address))


def _meanings(address: Address) -> list[Address]:
    """The address and the IPv4 addresses that lie inside it: ::ffff:a.b.c.d, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    mapped = address.ipv4_mapped
    if mapped is not None:
        return [mapped]
    inner: list[Address] = [address]
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return inner
