"""Credentials in the desktop's keyring, against a real one: found, missing, locked, hanging, absent; never shown."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ringfence.egress import credentials
from ringfence.egress.credentials import Credential, Source, Vault, read_secret, session_environment
from ringfence.model.errors import RingfenceError
from ringfence.model.tier import Tier

SECRET = "s3cret-in-the-keyring"
ENTRY = {"service": "pkg.example.org", "user": "a b"}


@pytest.fixture
def keyring(kit, monkeypatch):
    double = kit.double("keyring")
    if double.MISSING:
        pytest.skip(f"not installed: {', '.join(double.MISSING)}")
    for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    # Not in the test's own folder: the address of a bus holds 107 bytes, and that may lie deep.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        made = double.Keyring(Path(folder))
        monkeypatch.setattr(credentials, "RUN_USER", str(made.run))
        made.store(SECRET, **ENTRY)
        yield made
        made.close()


def bound(**entry):
    return Credential(name="index", host="pkg.example.org", source=Source(keyring=entry or ENTRY))


def refusal(credential):
    with pytest.raises(RingfenceError) as refused:
        read_secret(credential)
    assert refused.value.code == "credential-unreadable"
    assert refused.value.where == "keyring"
    assert refused.value.remedy
    assert SECRET not in str(refused.value) + repr(refused.value.__cause__)
    return f"{refused.value.what}; {refused.value.remedy}"


def test_a_value_is_found_by_exactly_its_attributes(keyring):
    assert read_secret(bound()) == SECRET
    assert read_secret(bound(service="pkg.example.org")) == SECRET  # fewer attributes name it as well
    text = refusal(bound(service="pkg.example.org", user="somebody"))
    assert "no entry service pkg.example.org user somebody that is unlocked" in text
    assert "secret-tool store --label=index service pkg.example.org user somebody" in text
    keyring.store("with blanks \n", service="other")
    assert read_secret(bound(service="other")) == "with blanks"


def test_the_remedy_is_a_line_that_a_person_can_paste(keyring):
    assert "secret-tool store --label=index service 'x; rm -rf ~'" in refusal(bound(service="x; rm -rf ~"))


@pytest.mark.parametrize("value", ["two\nlines", "a\ttab"])
def test_what_is_no_one_line_value_is_refused(keyring, value):
    keyring.store(value, service="odd")
    assert "not one line" in refusal(bound(service="odd"))


def test_a_locked_keyring_refuses_with_the_remedy(keyring):
    keyring.lock()
    assert "unlock the keyring" in refusal(bound())


def test_a_keyring_that_waits_for_a_person_is_given_up_and_not_asked_again_at_once(keyring, monkeypatch):
    monkeypatch.setattr(credentials, "SECONDS", 0.5)
    asked = []
    real = credentials.read_secret
    monkeypatch.setattr(credentials, "read_secret", lambda credential: asked.append(1) or real(credential))
    keyring.hang()
    assert "did not answer within 0.5 s" in refusal(bound())
    vault = Vault(bound())
    for _ in range(5):
        with pytest.raises(RingfenceError):
            vault.value()
    assert len(asked) == 1
    monkeypatch.setattr(credentials, "FAILED_SECONDS", 0.0)
    monkeypatch.setattr(credentials, "read_secret", lambda _: "given at last")
    assert vault.value() == "given at last"
    assert "given at last" not in repr(vault)


def test_a_value_is_told_before_anybody_gets_it(tmp_path, monkeypatch):
    place = tmp_path / "value"
    place.touch(0o600)
    place.write_text("one\n")
    told = []
    vault = Vault(Credential(name="a", host="a.example.org", source=Source(file=str(place))), told.append)
    assert vault.value() == vault.value() == "one"
    monkeypatch.setattr(credentials, "KEEP_SECONDS", 0.0)
    place.write_text("two\n")
    assert vault.value() == "two"
    assert told == ["one", "two"]


def test_without_a_session_bus_the_refusal_says_so(keyring, monkeypatch):
    keyring.daemon.kill()
    keyring.daemon.wait()
    assert "no keyring answers" in refusal(bound())
    keyring.bus.kill()
    keyring.bus.wait()
    assert "no keyring answers" in refusal(bound())
    monkeypatch.setattr(credentials, "RUN_USER", "/nonexistent")
    assert "no keyring answers" in refusal(bound())


def test_without_the_program_the_refusal_names_the_package(monkeypatch):
    monkeypatch.setattr(credentials, "KEYRING_CLIENT", "/nonexistent/secret-tool")
    assert "libsecret-tools" in refusal(bound())


def test_the_bus_is_found_without_any_environment(keyring, monkeypatch):
    """A supervisor that a client started has no environment at all."""
    code = (
        "import sys; from ringfence.egress import credentials as c; c.RUN_USER = sys.argv[1]\n"
        "s = c.Source(keyring={'service': 'pkg.example.org'})\n"
        "print(c.read_secret(c.Credential(name='x', host='h.example', source=s)))"
    )
    run = [sys.executable, "-I", "-c", code, str(keyring.run)]
    done = subprocess.run(run, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == SECRET, done.stderr
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/elsewhere")
    assert session_environment()["DBUS_SESSION_BUS_ADDRESS"] == keyring.address
    keyring.own.chmod(0o755)  # no login makes it so: others could have put a bus there
    assert session_environment() == {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/elsewhere"}
    assert refusal(bound())


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_request_gets_the_value_and_a_locked_keyring_refuses_it_with_the_reason(keyring, world, kit, capfd):
    rig = world.rig(
        kit.Rules(allow=("pkg.example.org:443",)),
        {"inspection": True, "trusted": str(world.ca)},
        inspects=lambda *_: True,
        credentials=(bound(),),
    )
    try:
        bundle = world.folder / f"keyring-ca-{os.getpid()}.pem"
        bundle.write_text(rig.worker.authority)
        placeholder = rig.worker.placeholders["index"]
        words = ["curl", "-sS", "--max-time", "8", "--cacert", str(bundle), "-H"]

        def get():
            return rig.box.run([*words, f"Authorization: Bearer {placeholder}", "https://pkg.example.org/a"])

        mark = world.internet.mark()
        assert "hello" in get().stdout
        (seen,) = [c for c in world.internet.contacts(mark) if c["server"] == "https"]
        assert seen["headers"]["authorization"] == f"Bearer {SECRET}"
        vault = rig.worker.answerer.vaults["index"]
        vault._read_at = -1e9  # a minute later
        keyring.lock()
        mark = world.internet.mark()
        done = get()
        assert "egress/no-credential" in done.stdout
        assert "unlock the keyring" in done.stdout
        assert not [c for c in world.internet.contacts(mark) if c["server"] == "https"]
        (line,) = rig.log(rule="egress/no-credential", tier=Tier.DENY)
        assert "unlock the keyring" in line.because
        assert SECRET not in done.stdout + done.stderr + repr(rig.lines)
    finally:
        rig.close()
    out, err = capfd.readouterr()
    assert SECRET not in out + err


def test_a_failed_look_keeps_the_stack_of_one_that_was_told_and_no_more(monkeypatch):
    def refuse(_credential):
        raise RingfenceError("no-credential", "it is not there")

    def frames():
        with pytest.raises(RingfenceError) as told:
            vault.value()
        return len(told.traceback)

    monkeypatch.setattr(credentials, "read_secret", refuse)
    vault = Vault(bound())
    frames()
    assert frames() == [frames() for _ in range(20)][-1]
