"""A box, a worker and a small internet for the tests of this room; the policy here is a double of a few lines."""

import contextlib
import dataclasses
import datetime as dt
import fnmatch
import importlib.util
import ipaddress
import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ringfence.egress.options import Options
from ringfence.egress.record import ConnectionLog
from ringfence.egress.upstream import Upstream
from ringfence.egress.worker import Worker
from ringfence.model.call import NetworkAccess, ToolCall
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.ids import CallId, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier

DOUBLES = Path(__file__).parent.parent / "doubles"


def double(name: str) -> ModuleType:
    """A module of tests/doubles, loaded once."""
    full = f"ringfence_doubles_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, DOUBLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


ZONE: dict[str, list[object]] = {
    "example.org": ["203.0.113.10", "2001:db8::10"],
    "files.example.org": ["203.0.113.11"],
    "www.example.org": ["cname:example.org"],
    "six.example.org": ["2001:db8::66"],
    "example.net": ["198.51.100.20"],
    "evil.example.net": ["198.51.100.66"],
    "example.com": ["192.0.2.30"],
    "*.wild.example.org": ["203.0.113.40"],
    "rebind.example.org": [["203.0.113.50"], ["192.168.77.1"]],
    "mixed.example.org": ["203.0.113.51", "10.0.0.5"],
    "private.example.org": ["10.0.0.5"],
    "loopback.example.org": ["127.0.0.1"],
    "meta.example.org": ["169.254.169.254"],
    "meta6.example.org": ["fd00:ec2::254"],
    "mapped.example.org": ["::ffff:169.254.169.254"],
    "cgnat.example.org": ["100.64.0.9"],
    "own.example.org": ["203.0.113.200"],
    "slow.example.org": ["slow"],
    "big.example.org": ["truncate", "203.0.113.60"],
    "xn--bcher-kva.example": ["203.0.113.70"],
    "pkg.example.org": ["203.0.113.80"],
    "pkgfiles.example.net": ["198.51.100.81"],
    "node.example.org": ["203.0.113.82"],
    "git.example.org": ["203.0.113.83"],
    "api.example.com": ["192.0.2.90"],
}


@dataclasses.dataclass
class Rules:
    """``host:port`` globs; the strictest match wins, what matches nothing is denied by default."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    only: tuple[tuple[str, str, str], ...] = ()
    """(host, method, path glob): requests with a method to this host must match one of its lines."""
    fault: bool = False

    def decide(self, call: ToolCall) -> Decision:
        if self.fault:
            raise RuntimeError("planted")
        request = call.request
        assert isinstance(request, NetworkAccess)
        text = f"{request.host}:{request.port}"
        reasons = [
            self._reason(tier, glob, text)
            for tier, globs in ((Tier.ALLOW, self.allow), (Tier.ASK, self.ask), (Tier.DENY, self.deny))
            for glob in globs
            if self._matches(glob, request.host, request.port)
        ]
        lines = [line for line in self.only if line[0] == request.host]
        if lines and request.method is not None:
            fits = any(m == request.method and fnmatch.fnmatchcase(request.path or "", p) for _h, m, p in lines)
            if not fits:
                reasons.append(self._reason(Tier.DENY, "only", f"{request.method} {request.path}"))
        if not reasons:
            reasons = [
                Reason(
                    rule=RuleId("default"),
                    scope=Scope.BUILTIN,
                    place=Place(file="builtin"),
                    tier=Tier.DENY,
                    matched=text,
                    because="no rule allows this host",
                    kind="default",
                )
            ]
        return Decision(call_id=CallId("c"), policy_digest=Sha256("0" * 64), reasons=tuple(reasons))

    def _matches(self, glob: str, host: str, port: int) -> bool:
        want, _, number = glob.rpartition(":")
        if int(number) != port:
            return False
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(want.strip("[]"))
        except ValueError:
            pass
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(host)
            return False
        if want.startswith("*."):
            return host.partition(".")[2] == want[2:]
        return host == want

    def _reason(self, tier: Tier, glob: str, matched: str) -> Reason:
        return Reason(
            rule=RuleId(f"{tier.word}-{glob}"),
            scope=Scope.REPOSITORY,
            place=Place(file="test"),
            tier=tier,
            matched=matched,
            because="the test says so",
        )


class Rig:
    """One box with its worker, in front of the test internet."""

    def __init__(self, world: "World", rules: Rules, options: dict[str, object], how: dict[str, object]) -> None:
        box_options = {key: how.pop(key) for key in ("nft", "endpoints", "host_ports", "inbound") if key in how}
        self.world, self.rules = world, rules
        self.box = double("netns").Box(**box_options)
        self.lines: list[ConnectionLog] = []
        self.ledger_fails = False
        self._lock = threading.Lock()
        options.setdefault("ask_millis", 700)
        try:
            self.worker = Worker.spawn(
                self.box.descriptors,
                mission=MissionId("m-test"),
                decide=rules.decide,
                record=self._record,
                resolver=Upstream(nameservers=((world.nameserver, 53),)),
                options=Options(prefix=world.internet.uplink, **options),
                **how,
            )
        except BaseException:
            self.box.close()
            raise

    def _record(self, line: ConnectionLog) -> None:
        if self.ledger_fails:
            raise OSError("disk full")
        with self._lock:
            self.lines.append(line)

    def run(self, *argv: str, **how: object):
        return self.box.run(argv, **how)

    def curl(self, *words: str, **how: object):
        ca = str(self.world.ca)
        return self.box.run(["curl", "-sS", "--max-time", "120", "--cacert", ca, *words], **how)

    def log(self, **want: object) -> list[ConnectionLog]:
        """Lines (not the ``decided`` ones) with these fields, waited for."""
        deadline = time.monotonic() + 120
        while True:
            with self._lock:
                found = [
                    line
                    for line in self.lines
                    if line.stage != "decided" and all(getattr(line, k) == v for k, v in want.items())
                ]
            if found or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def close(self) -> None:
        self.worker.stop()
        self.box.close()


class World:
    """The test internet with its certificate authority, shared by a session of tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca, certificate, key = make_certificates(folder)
        self.internet = double("internet").Internet(folder, ZONE, certificate, key)
        self.nameserver = double("internet").NAMESERVER

    def rig(self, rules: Rules, options: dict[str, object] | None = None, **how: object) -> Rig:
        return Rig(self, rules, dict(options or {}), how)


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A CA, and one server certificate for every name and address of the zone. Returns CA, certificate and key files."""
    now = dt.datetime(2026, 1, 1)
    day = dt.timedelta(days=1)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test internet CA")])

    def base(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3650 * day)
            .not_valid_after(now + 36500 * day)
        )

    ca = (
        base(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in ZONE]
    names += [x509.IPAddress(ipaddress.ip_address(a)) for a in ("203.0.113.10", "203.0.113.99", "2001:db8::10")]
    leaf = (
        base(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test servers")]), key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    paths = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    paths[0].write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    paths[2].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("internet"))
    yield made
    made.internet.close()


@pytest.fixture(scope="module")
def rigs(world: World) -> Iterator[Callable[..., Rig]]:
    """``rigs(rules, options, **box)``: one rig for each distinct arguments, closed with the module."""
    made: dict[str, Rig] = {}

    def get(rules: Rules, options: dict[str, object] | None = None, **how: object) -> Rig:
        key = repr((rules, options, sorted(how.items(), key=lambda item: item[0])))
        if key not in made:
            made[key] = world.rig(rules, options, **how)
        return made[key]

    yield get
    for rig in made.values():
        rig.close()


@pytest.fixture(scope="session")
def kit() -> type:
    """What test modules need of this file, by attribute."""
    return type("Kit", (), {"Rules": Rules, "Rig": Rig, "double": staticmethod(double), "ssl": ssl, "os": os})
