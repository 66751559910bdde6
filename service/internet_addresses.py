"""Which addresses are public, however they are written, and which are of this machine."""

import ipaddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_COMPATIBLE = ipaddress.ip_network("::/96")  # the deprecated form ::a.b.c.d of RFC 4291
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # IPv6 addresses that embed an IPv4 address, by RFC 6052
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to networks of the internet (RFC 4291)
_ISATAP = (0x00005EFE, 0x02005EFE)  # before an IPv4 address at the end of an IPv6 address (RFC 5214)
_NOT_PUBLIC = (
    ipaddress.ip_network("3fff::/20"),  # for documents (RFC 9637), which Python does not know
    ipaddress.ip_network("192.0.0.0/24"),  # assigned for protocols (RFC 6890); Python regards some as public
    ipaddress.ip_network("168.63.129.16/32"),  # the platform of Azure, which answers virtual machines only
)
LOOPBACK = ("localhost", "127.0.0.1", "::1")  # what clients on this machine are told
LAST_PORT = 65_535


def is_loopback(host: str) -> bool:
    """Whether an address or name is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def inside(address: Address, network: Network) -> bool:
    """Whether an address, or the IPv4 address it embeds, is in the network."""
    return any(one in network for one in _meanings(address) if one.version == network.version)


def is_public(address: Address) -> bool:
    """Whether an address, and each address that it embeds, is public."""
    return all(one.is_global and not one.is_multicast and not _assigned(one) for one in _meanings(address))


def _assigned(address: Address) -> bool:
    """Whether an address is kept for something else than hosts of the internet."""
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST and address not in _NAT64:
        return True
    return any(address in network for network in _NOT_PUBLIC)


def _meanings(address: Address) -> list[Address]:
    """The address and the IPv4 addresses that it embeds: ::ffff:a.b.c.d, 6to4, Teredo, NAT64, ISATAP."""
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
    if address in _NAT64 or address in _COMPATIBLE or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return inner
