"""A credential that is packed is found, or the answer is "cannot tell": no way of packing makes it vanish."""

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from ringfence.promotion.artifacts import members
from ringfence.promotion.credentials import find_secrets
from ringfence.promotion.decode import CAP, Unread

TOKEN = b"token: ghp_" + b"k3J9x2Lq8Zr5Tn1Vb7Wc4Yd6Mf0Ph" + b"aS2e4U6\n"


def zipped(files, before=b""):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files:
            archive.writestr(name, body)
    return before + packed.getvalue()


def tarred(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, body in files:
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return packed.getvalue()


def without_name():
    """A zip archive whose one member has an empty name."""
    return zipped([("n", TOKEN)]).replace(b"\x01\0\0\0n", b"\0\0\0\0n")


def encrypted():
    """Marked as encrypted in both of its headers, the token behind it."""
    raw = bytearray(zipped([("a", b"x" * 40), ("b", TOKEN)]))
    raw[6] |= 1
    raw[raw.index(b"PK\1\2") + 8] |= 1
    return bytes(raw)


WRAPPED = base64.encodebytes(gzip.compress(TOKEN + bytes(range(256))))
FOUND = {
    "plain": TOKEN,
    "gzip": gzip.compress(TOKEN),
    "a second gzip stream": gzip.compress(b"x") + gzip.compress(TOKEN),
    "a second bzip2 stream": bz2.compress(b"x") + bz2.compress(TOKEN),
    "a second xz stream": lzma.compress(b"x") + lzma.compress(TOKEN),
    "zip behind a gzip stream": gzip.compress(b"x") + zipped([("a", TOKEN)]),
    "zip": zipped([("a", TOKEN)]),
    "zip behind a script": zipped([("a", TOKEN)], b"#!/bin/sh\nexec unzip $0\n"),
    "script before a zip": zipped([("a", b"x")], base64.b64encode(TOKEN) + b"\n"),
    "tar in gzip": gzip.compress(tarred([("a", b"x"), ("b", TOKEN)])),
    "base64 over lines": base64.encodebytes(b"x" * 50 + TOKEN),
    "gzip in base64 over lines": b"data:\n" + WRAPPED,
    "gzip in the second run of base64": base64.b64encode(b"hello hello hello hello")
    + b" "
    + base64.b64encode(gzip.compress(TOKEN)),
}
UNREAD = {
    "more than is read, in gzip": gzip.compress(b"\0" * CAP + TOKEN),
    "exactly what is read, and more": gzip.compress(b"\0" * (CAP - 10) + TOKEN),
    "a gzip stream cut short": gzip.compress(TOKEN * 20)[:-12],
    "a damaged zip": zipped([("a", TOKEN)]).replace(b"PK\1\2", b"PK\1\3"),
    "an encrypted member before it": encrypted(),
    "more members than are read": zipped([(str(n), b"x") for n in range(2000)] + [("last", TOKEN)]),
    "more tar members than are read": gzip.compress(tarred([(str(n), b"x") for n in range(2000)] + [("last", TOKEN)])),
    "five deep": gzip.compress(gzip.compress(gzip.compress(gzip.compress(gzip.compress(TOKEN))))),
    "zstandard": b"\x28\xb5\x2f\xfd" + TOKEN[::-1],
    "7z": b"7z\xbc\xaf\x27\x1c" + TOKEN[::-1],
}
ORDINARY = {
    "words that begin like bzip2": b"BZhang wrote this line of text, and nothing is packed in it.\n",
    "hashes in a lock file": b"".join(
        b'"integrity": "sha512-' + base64.b64encode(bytes([n]) * 64) + b'"\n' for n in range(200)
    ),
    "a picture's bytes": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
    "a zip without members": zipped([]),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_packed_credential_is_found(name):
    assert [secret.rule for secret in find_secrets(FOUND[name])]


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_packed_and_not_read_is_said(name):
    with pytest.raises(Unread):
        find_secrets(UNREAD[name])


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_bytes_are_read_whole(name):
    assert find_secrets(ORDINARY[name]) == []


def test_a_member_without_a_name_is_read_or_the_archive_is_not():
    try:
        assert find_secrets(without_name())
    except Unread:
        pass
    members(without_name())


def test_a_damaged_archive_cannot_be_compared():
    raw = bytearray(zipped([("a", TOKEN * 30)]))
    raw[40] ^= 0xFF
    assert members(bytes(raw)) is None
