"""Fuzz what reads bytes from outside with atheris: python bench/fuzz/readers.py READER [-max_total_time=600] [CORPUS]

Readers are named in ``READERS``; each may raise what is listed with it, and nothing else. atheris is not installed by
default (`pip install atheris`).
"""

import contextlib
import sys

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: pip install atheris")

with atheris.instrument_imports(include=["ringfence"]):
    from ringfence.egress import dns, http1, nflog, socks, tls
    from ringfence.ledger import canonical, note
    from ringfence.model.errors import RingfenceError
    from ringfence.policy.policy import Policy
    from ringfence.promotion import credentials, decode, jws, objects, strict
    from ringfence.promotion.blast.documents import Unreadable, read_documents
    from ringfence.promotion.blast.sql import compare_sql
    from ringfence.sandbox.worktree import ignore
    from ringfence.supervisor import protocol, requests


def read_http(data: bytes) -> None:
    head = http1.read_head(data)
    if head is None:
        return
    http1.host_of(head)
    http1.overrides(head)
    http1.absolute(head.target)
    http1.split_target(head.target)
    again = http1.read_head(http1.closing(data, head))
    if again is None or again.framing is not head.framing:
        raise AssertionError("the head sent on is framed otherwise than the head read")
    whole, pieces = http1.Body.of(head), http1.Body.of(head)
    rest = data[head.length :]
    taken = whole.take(rest)
    one_by_one = sum(pieces.take(rest[at : at + 1]) for at in range(len(rest)))
    if (taken, whole.done, whole.drain()) != (one_by_one, pieces.done, pieces.drain()):
        raise AssertionError("a body cut into pieces is not the body in one piece")


def read_dns(data: bytes) -> None:
    query = dns.read_query(data)
    dns.read_query(b"".join((data[:2], b"\1\0\0\1\0\0\0\0\0\0", query.raw_question)))
    dns.answer(query, dns.Rcode.REFUSED)


def read_socks(data: bytes) -> None:
    length = socks.greeting_length(data)
    if length is not None:
        socks.read_request(data[length:])


def read_canonical(data: bytes) -> None:
    if canonical.encode(canonical.decode(data)) != data:
        raise AssertionError("two encodings of one record")


def read_policy(data: bytes) -> None:
    policy = Policy.parse(data.decode("utf-8", "surrogateescape"))
    again = Policy.from_effective(policy.effective())
    if again.effective() != policy.effective():
        raise AssertionError("a policy that is another one after it was stored")


def read_ignore(data: bytes) -> None:
    pattern, _, path = data.partition(b"\0")
    ignore.is_ignored([ignore.parse(pattern)], path or b"x", directory=False)


def read_changes(data: bytes) -> None:
    for _ in decode.layers(data):
        pass
    credentials.find_secrets(data)


READERS = {
    "http": (read_http, (http1.BadRequestError,)),
    "dns": (read_dns, (dns.BadMessageError,)),
    "dns-reply": (lambda data: dns.read_reply(data, 0, "a.example", 1), (dns.BadMessageError,)),
    "tls": (tls.read_hello, (tls.BadHelloError,)),
    "socks": (read_socks, (socks.BadSocksError,)),
    "nflog": (nflog.read_packets, ()),
    "record": (read_canonical, (RingfenceError,)),
    "checkpoint": (note.parse, (ValueError,)),
    "policy": (read_policy, (RingfenceError,)),
    "request": (requests.parse, (RingfenceError,)),
    "frame": (protocol.decode, (RingfenceError,)),
    "ignore": (read_ignore, ()),
    "token": (jws.take_apart, (jws.BadToken,)),
    "json": (strict.parse, (strict.Malformed,)),
    "commit": (lambda data: objects.parse_commit("0" * 40, data), (objects.BadObject,)),
    "tree": (lambda data: objects.parse_tree("0" * 40, data), (objects.BadObject,)),
    "sql": (lambda data: compare_sql(None, data, "postgres"), (Unreadable,)),
    "documents": (lambda data: read_documents("x.yaml", data), (Unreadable,)),
    "changes": (read_changes, (decode.Unread,)),
}

if len(sys.argv) < 2 or sys.argv[1] not in READERS:
    sys.exit(f"name one of: {' '.join(READERS)}")
reader, expected = READERS[sys.argv.pop(1)]


@atheris.instrument_func
def one(data: bytes) -> None:
    with contextlib.suppress(expected):
        reader(data)


atheris.Setup(sys.argv, one)
atheris.Fuzz()
