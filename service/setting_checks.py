"""The form of settings: of the text of any one, and of single ones.

The function of a single setting returns its value, or raises ValueError with what was expected.
"""

import re
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from unicodedata import category
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from service.errors import ConfigurationError
from service.internet_addresses import LAST_PORT
from service.messaging.kafka.config import is_topic, topic_clusters

_BROKER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", re.ASCII)
_IPV4_IN_IPV6 = IPv6Network("::ffff:0:0/96")
MOST_OF_ALL_ADDRESSES = 1 / 16  # of IPv4 or IPv6: all private networks take 1/200, the public ones of IPv6 an eighth
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode categories: controls, directions, surrogates, line separators


def wrong_text(value: str, *, may_be_empty: bool, secret: bool) -> str | None:
    """What was expected instead of a text that no setting may have; None if it may be the value of this setting.

    Args:
        value: the text of the environment variable.
        may_be_empty: of a list: without entries.
        secret: any characters may be part of a password.
    """
    if not may_be_empty and not value.strip():
        return "a value that is not empty; leave the variable out to use the default"
    if not secret and any(category(letter) in _NOT_SHOWN for letter in value):
        return "a text without control characters and characters that are not shown"
    return None


def host(value: str) -> str:
    """The address that the server listens on."""
    if not re.fullmatch(r"[\w.:%\[\]-]+", value):
        raise ValueError("an address or name of this machine; 0.0.0.0 or :: for all addresses")
    return value


def public_url(value: str | None) -> str | None:
    """An address for browsers."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.username is None
    except ValueError:
        usable = False
    if not usable or not re.fullmatch(r"[\w.:\[\]-]+", parts.netloc) or parts.query or parts.fragment:
        raise ValueError("an address for browsers, such as https://faultline.example")
    return value


def brokers(value: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses of brokers. Whether they answer is not asked: a broker may be down at the moment."""
    for one in value:
        found = _BROKER.fullmatch(one)
        if found is None or not 1 <= int(found[2]) <= LAST_PORT:
            raise ValueError("host:port of each broker, separated by commas, such as kafka-1:9092,kafka-2:9092")
    return value


def topics(value: tuple[str, ...]) -> tuple[str, ...]:
    """Entries `topic` or `topic=cluster`."""
    try:
        topic_clusters(value)
    except ConfigurationError as error:
        raise ValueError(error.errors[0].expected) from None
    return value


def one_topic(value: str | None) -> str | None:
    """One entry `topic` or `topic=cluster`."""
    if value is not None:
        topics((value,))
    return value


def topic_name(value: str) -> str:
    """The name of a topic."""
    if not is_topic(value):
        raise ValueError("a topic's name: at most 249 letters A-Z, digits, dots, underscores and hyphens")
    return value


def proxies(value: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses or networks of proxies."""
    return _networks(value, "10.0.0.5,10.1.0.0/16", "addresses of the proxies only, not those of everybody")


def networks(value: tuple[str, ...]) -> tuple[str, ...]:
    """Networks in which servers may be."""
    return _networks(
        value, "10.20.0.0/16,fd12:3456::/32", "networks of the servers only, not a large part of all addresses"
    )


def _networks(value: tuple[str, ...], example: str, not_all: str) -> tuple[str, ...]:
    try:
        found = [ip_network(one, strict=False) for one in value]
    except ValueError:
        raise ValueError(f"addresses or networks such as {example}") from None
    of_4 = [one for one in found if isinstance(one, IPv4Network)]
    of_6 = [one for one in found if isinstance(one, IPv6Network)]
    of_4 += [_ipv4(one) for one in of_6 if one.subnet_of(_IPV4_IN_IPV6)]
    for same in (collapse_addresses(of_4), collapse_addresses(of_6)):
        if sum(0.5**one.prefixlen for one in same) > MOST_OF_ALL_ADDRESSES:
            raise ValueError(not_all)
    return tuple(str(network) if "/" in one else one for one, network in zip(value, found, strict=True))


def _ipv4(network: IPv6Network) -> IPv4Network:
    """The network of IPv4 that ::ffff:a.b.c.d stands for."""
    of_6 = _IPV4_IN_IPV6.prefixlen
    return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - of_6))


def time_zone(value: str) -> str:
    """A time zone of the IANA database."""
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError("a time zone of the IANA database, such as Europe/Berlin") from None
    return value
