from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from service.deliveries.channels.address_check import Refused, permitted

PUBLIC = "93.184.216.34"


def lookup(*addresses: str) -> "Lookup":
    return Lookup(addresses)


class Lookup:
    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        del host, port
        self.asked += 1
        return self.addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::a00:1",
        "192.0.0.192",
        "192.0.0.9",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "64:ff9b:1::7f00:1",
        "::ffff:0:127.0.0.1",
        "2606:4700::5efe:7f00:1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
    ],
)
def test_internal_addresses_are_refused_however_they_are_written(address: str) -> None:
    with pytest.raises(Refused, match="internal"):
        permitted("hook.example", 443, [], lookup=lookup(address))


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "64:ff9b::5db8:d822", "2002:5db8:d822::1"])
def test_public_addresses_may_be_connected_to(address: str) -> None:
    assert permitted("hook.example", 443, [], lookup=lookup(address)) == address


def test_a_listed_network_may_be_connected_to() -> None:
    allow = [ip_network("10.20.0.0/16")]
    assert permitted("hook", 443, allow, lookup=lookup("10.20.1.1")) == "10.20.1.1"
    assert permitted("hook", 443, allow, lookup=lookup("::ffff:10.20.1.1")) == "::ffff:10.20.1.1"
    with pytest.raises(Refused):
        permitted("hook", 443, allow, lookup=lookup("10.21.1.1"))


def test_a_name_is_asked_for_once_and_the_first_good_address_taken() -> None:
    asked = lookup("127.0.0.1", PUBLIC)
    assert permitted("hook.example", 443, [], lookup=asked) == PUBLIC
    assert asked.asked == 1


def test_without_tls_only_listed_networks() -> None:
    with pytest.raises(Refused, match="TLS"):
        permitted("hook.example", 80, [], plain=True, lookup=lookup(PUBLIC))
