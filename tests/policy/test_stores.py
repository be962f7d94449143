"""Effective policies by digest, and trust: nothing that is missing, altered or unreadable counts."""

import os
from pathlib import Path

import pytest

from ringfence.model.errors import PolicyError
from ringfence.model.person import Person
from ringfence.policy.store import PolicyStore
from ringfence.policy.trust import TrustStore

PERSON = Person(name="ada", uid=1000, how="terminal")


def test_what_is_put_comes_back_by_its_digest(tmp_path: Path) -> None:
    store = PolicyStore(str(tmp_path / "policies"))
    digest = store.put(b"{}")
    assert store.put(b"{}") == digest
    assert store.get(digest) == b"{}"
    assert len(os.listdir(tmp_path / "policies")) == 1


@pytest.mark.parametrize("digest", ["", "x", "../../etc/passwd", "A" * 64, "0" * 64])
def test_what_is_not_there_is_an_error(tmp_path: Path, digest: str) -> None:
    with pytest.raises(PolicyError) as caught:
        PolicyStore(str(tmp_path)).get(digest)
    assert caught.value.code == "policy-not-stored"


def test_what_was_altered_is_an_error(tmp_path: Path) -> None:
    store = PolicyStore(str(tmp_path))
    digest = store.put(b"one")
    (tmp_path / f"{digest}.json").write_bytes(b"two")
    with pytest.raises(PolicyError, match="altered"):
        store.get(digest)


def test_trust_is_for_one_text_in_one_place(tmp_path: Path) -> None:
    store = TrustStore(str(tmp_path / "trust"))
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert not store.is_trusted(str(one), "d1")
    store.trust(str(one), "d1", PERSON, 5)
    assert store.is_trusted(str(one), "d1")
    assert not store.is_trusted(str(one), "d2")
    assert not store.is_trusted(str(other), "d1")
    store.trust(str(one), "d2", PERSON, 6)
    assert not store.is_trusted(str(one), "d1")
    found = store.find(str(one))
    assert found is not None
    assert (found.by, found.uid, found.how, found.at) == ("ada", 1000, "terminal", 6)
    store.withdraw(str(one))
    store.withdraw(str(one))
    assert not store.is_trusted(str(one), "d2")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"root": 1}', b"[" * 5000])
def test_a_record_that_cannot_be_read_is_no_trust(tmp_path: Path, content: bytes) -> None:
    store = TrustStore(str(tmp_path / "trust"))
    store.trust(str(tmp_path), "d", PERSON, 1)
    (record,) = (tmp_path / "trust").iterdir()
    record.write_bytes(content)
    assert not store.is_trusted(str(tmp_path), "d")


def test_a_record_of_another_place_is_no_trust(tmp_path: Path) -> None:
    store = TrustStore(str(tmp_path / "trust"))
    store.trust(str(tmp_path), "d", PERSON, 1)
    (record,) = (tmp_path / "trust").iterdir()
    record.write_bytes(record.read_bytes().replace(str(tmp_path).encode(), b"/elsewhere"))
    assert not store.is_trusted(str(tmp_path), "d")


def test_a_pipe_in_the_place_of_a_policy_is_never_waited_for(tmp_path: Path) -> None:
    store = PolicyStore(str(tmp_path))
    digest = store.put(b"{}")
    (tmp_path / f"{digest}.json").unlink()
    os.mkfifo(tmp_path / f"{digest}.json")
    with pytest.raises(PolicyError) as caught:
        store.get(digest)
    assert caught.value.code == "policy-altered"
