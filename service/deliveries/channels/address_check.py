"""The addresses that deliveries may use: public ones, and internal ones in networks that the administrator lists."""

import ipaddress
import socket
from collections.abc import Callable, Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

# IPv6 prefixes that embed an IPv4 address, by RFC 6052 (NAT64).
_COMPATIBLE = ipaddress.ip_network("::/96")  # the deprecated form ::a.b.c.d of RFC 4291
# Assigned for protocols (RFC 6890); Python regards some of these addresses as public.
_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


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


def inside(address: Address, network: Network) -> bool:
    """Whether an address, or the IPv4 address it embeds, is in the network."""
    return any(one in network for one in _meanings(address) if one.version == network.version)


def is_public(address: Address) -> bool:
    """Whether an address, and each address that it embeds, is public."""
    return all(one.is_global and not one.is_multicast and not inside(one, _PROTOCOLS) for one in _meanings(address))


def _meanings(address: Address) -> list[Address]:
    """The address and the IPv4 addresses that it embeds: ::ffff:a.b.c.d, 6to4, Teredo, NAT64."""
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
    if address in _NAT64 or address in _COMPATIBLE:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return inner
