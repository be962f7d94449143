"""Host spellings, the floor, names that differ: pure, with the spellings that attackers use."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.egress.rules import (
    BadHostError,
    FloorClass,
    canonical_address,
    canonical_host,
    floor,
    odd_labels,
    same_host,
    split_authority,
)

SAME = {
    "Example.ORG": "example.org",
    "example.org.": "example.org",
    "xn--BCHER-kva.example": "xn--bcher-kva.example",
    "_srv.example.org": "_srv.example.org",
    "2852039166": "169.254.169.254",
    "0xA9FEA9FE": "169.254.169.254",
    "0251.0376.0251.0376": "169.254.169.254",
    "169.254.43518": "169.254.169.254",
    "169.16689662": "169.254.169.254",
    "0xa9.254.0251.254": "169.254.169.254",
    "127.1": "127.0.0.1",
    "0": "0.0.0.0",
    "1.2.3.4.": "1.2.3.4",
    "[::FFFF:169.254.169.254]": "169.254.169.254",
    "::ffff:a9fe:a9fe": "169.254.169.254",
    "[2001:DB8:0:0::1]": "2001:db8::1",
}


@pytest.mark.parametrize("text", SAME)
def test_one_spelling_for_every_host(text):
    assert canonical_host(text).text == SAME[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        ".example.org",
        "example.org..",
        "bücher.example",
        "a b",
        "a/b",
        "a@b",
        "a\0b",
        "a\nb",
        "256.1.1.1",
        "1.2.3.4.5",
        "1.2.3.256",
        "4294967296",
        "099.1.1.1",
        "1.2.3.0x",
        "a.1",
        "a" * 64,
        ".".join(["a" * 63] * 5),
        "[fe80::1%eth0]",
        "[::1",
        "::1]",
        "[1.2.3.4]",
        "0000000000000000001",
    ],
)
def test_what_no_careful_client_sends_is_refused(text):
    with pytest.raises(BadHostError):
        canonical_host(text)


@given(st.text(max_size=300))
def test_canonical_is_stable_or_refuses(text):
    try:
        host = canonical_host(text)
    except BadHostError:
        return
    assert canonical_host(host.text) == host


@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "0x{:x}", "0{:o}"]))
def test_every_number_form_is_its_address(number, form):
    assert canonical_host(form.format(number)).address == ipaddress.IPv4Address(number)


FLOOR = {
    "169.254.169.254": FloorClass.METADATA,
    "169.254.170.2": FloorClass.METADATA,
    "168.63.129.16": FloorClass.METADATA,
    "100.100.100.200": FloorClass.METADATA,
    "fd00:ec2::254": FloorClass.METADATA,
    "127.0.0.1": FloorClass.LOOPBACK,
    "127.255.255.255": FloorClass.LOOPBACK,
    "::1": FloorClass.LOOPBACK,
    "0.0.0.0": FloorClass.UNSPECIFIED,
    "::": FloorClass.UNSPECIFIED,
    "10.1.2.3": FloorClass.PRIVATE,
    "172.31.255.255": FloorClass.PRIVATE,
    "192.168.0.1": FloorClass.PRIVATE,
    "100.64.0.1": FloorClass.CGNAT,
    "100.127.255.255": FloorClass.CGNAT,
    "169.254.1.1": FloorClass.LINK_LOCAL,
    "fe80::1": FloorClass.LINK_LOCAL,
    "fd12::1": FloorClass.UNIQUE_LOCAL,
    "224.0.0.251": FloorClass.MULTICAST,
    "ff02::1": FloorClass.MULTICAST,
    "255.255.255.255": FloorClass.RESERVED,
    "198.18.0.1": FloorClass.SYNTHETIC,
    "198.19.255.255": FloorClass.SYNTHETIC,
    "fd72:6e66:6365::100": FloorClass.SYNTHETIC,
    "::ffff:127.0.0.1": FloorClass.LOOPBACK,
    "::127.0.0.1": FloorClass.LOOPBACK,
    "64:ff9b::a9fe:a9fe": FloorClass.METADATA,
    "2002:a9fe:a9fe::1": FloorClass.METADATA,
    "2002:7f00:1::": FloorClass.LOOPBACK,
    "2001:0:a9fe:a9fe::": FloorClass.METADATA,
    "::ffff:0:a9fe:a9fe": FloorClass.METADATA,
    "2001:db8::5efe:a9fe:a9fe": FloorClass.METADATA,
    "2001:db8::200:5efe:7f00:1": FloorClass.LOOPBACK,
    "64:ff9b:1:7f00:0:100:808:808": FloorClass.RESERVED,
    "64:ff9b:1::a9fe:a9fe": FloorClass.METADATA,
    "fd00:42::42": FloorClass.METADATA,
}


@pytest.mark.parametrize("text", FLOOR)
def test_the_floor(text):
    assert floor(ipaddress.ip_address(text)) is FLOOR[text]


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "172.32.0.0",
        "172.15.255.255",
        "100.128.0.0",
        "198.17.255.255",
        "203.0.113.1",
        "2606:4700::1",
        "64:ff9b::101:101",
    ],
)
def test_addresses_above_the_floor(text):
    assert floor(ipaddress.ip_address(text)) is None


def test_only_networks_that_an_organisation_may_own_can_be_opened():
    liftable = {kind for kind in FloorClass if kind.liftable}
    assert liftable == {FloorClass.PRIVATE, FloorClass.CGNAT, FloorClass.UNIQUE_LOCAL, FloorClass.OWN}


@given(st.integers(0, 2**32 - 1))
def test_mapping_an_address_into_ipv6_does_not_change_its_class(number):
    plain = ipaddress.IPv4Address(number)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    assert floor(mapped) is floor(plain)
    assert canonical_address(mapped) == plain


def test_same_host_sees_through_spelling_and_refuses_what_it_cannot_read():
    host = canonical_host("example.org")
    assert same_host(host, "EXAMPLE.org.")
    assert not same_host(host, "example.org.evil.example.net")
    assert not same_host(host, "example.org\0")
    assert not same_host(host, "")


AUTHORITIES = {
    "example.org:443": ("example.org", 443),
    "example.org": ("example.org", 80),
    "[::1]:8080": ("[::1]", 8080),
    "[::1]": ("[::1]", 80),
}


@pytest.mark.parametrize("text", AUTHORITIES)
def test_authority(text):
    assert split_authority(text, default=80) == AUTHORITIES[text]


@pytest.mark.parametrize(
    "text",
    ["a:b", "a:", "a:1:2", "a:0", "a:65536", "a:١", "u@a:1", "a:1/x", "a :1", "[::1", "[::1]x", "a:000443", "", "a"][
        :-2
    ],
)
def test_doubtful_authorities_are_refused(text):
    with pytest.raises(BadHostError):
        split_authority(text, default=80)


def test_an_authority_without_a_port_needs_a_default():
    with pytest.raises(BadHostError):
        split_authority("example.org")


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("www.example.org", False),
        ("cdn-lfs-us-1.example.org", False),
        ("production-cloudfront-docker.example.org", False),
        ("a" * 40 + ".example.org", True),
        ("k3jd92mxl1q8zv7wr5tn6ybc4h.example.org", True),
        (".".join(["deadbeef01"] * 12) + ".example.org", True),
    ],
)
def test_labels_that_look_like_data(name, odd):
    assert odd_labels(name) is odd
