"""Two archives agree by members only if nothing that a reader would unpack differs."""

import io
import tarfile
import zipfile

import pytest

from ringfence.promotion import artifacts


def tar(*members: tuple[str, bytes, int, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, body, mode, kind in members:
            info = tarfile.TarInfo(name)
            info.mode, info.type = mode, kind
            if kind == tarfile.REGTYPE:
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body))
            else:
                info.linkname = body.decode()
                archive.addfile(info)
    return packed.getvalue()


def zipped(*members: tuple[str, bytes, int]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, body)
    return packed.getvalue()


PLAIN = ("bin/tool", b"x", 0o755, tarfile.REGTYPE)


@pytest.mark.parametrize(
    "other",
    [
        ("bin/tool", b"x", 0o4755, tarfile.REGTYPE),
        ("bin/tool", b"x", 0o755, tarfile.SYMTYPE),
        ("bin/tool", b"x", 0o755, tarfile.LNKTYPE),
        ("bin/tool", b"y", 0o755, tarfile.REGTYPE),
    ],
)
def test_kind_special_bits_and_body_of_a_tar_member_count(other):
    assert artifacts.members(tar(PLAIN)) is not None
    assert artifacts.members(tar(PLAIN)) != artifacts.members(tar(other))


@pytest.mark.parametrize("mode", [0o120755, 0o104755, 0o100644])
def test_kind_and_special_bits_of_a_zip_member_count(mode):
    plain = artifacts.members(zipped(("tool", b"x", 0o100755)))
    assert plain is not None
    assert plain != artifacts.members(zipped(("tool", b"x", mode)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_cannot_be_compared():
    assert artifacts.members(zipped(("tool", b"x", 0o100755), ("tool", b"y", 0o100755))) is None
    assert artifacts.members(tar(PLAIN, PLAIN)) is None


@pytest.mark.parametrize("pack", ["tar", "zip"])
def test_more_members_than_are_read_cannot_be_compared(pack, monkeypatch):
    monkeypatch.setattr(artifacts, "_MEMBERS", 3)
    names = [f"file{number}" for number in range(4)]
    if pack == "tar":
        raw = tar(*((name, b"x", 0o644, tarfile.REGTYPE) for name in names))
    else:
        raw = zipped(*((name, b"x", 0o100644) for name in names))
    assert artifacts.members(raw) is None
