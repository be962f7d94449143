"""Trusting a repository's policy: recorded first, then in force. Through the supervisor where one runs, else right here."""

import os
import pwd
import time

from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, Sha256
from ringfence.model.person import Person
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths, make_private


def trust(paths: Paths, root: str, digest: Sha256, by: Person, *, withdraw: bool = False) -> None:
    """Trust the policy that has this trust digest at ``root``, or withdraw the trust. Raises when it cannot be recorded."""
    payload: dict[str, object] = {"root": root, "digest": str(digest), "withdraw": withdraw}
    try:
        client.request(paths, "trust", payload, start=False)
    except RingfenceError as error:
        if error.code != "no-supervisor":
            raise
    else:
        return
    from ringfence.policy.trust import TrustStore
    from ringfence.supervisor.recording import append_directly

    now = Micros(time.time_ns() // 1000)
    body = trust_body(root, digest, by, withdraw=withdraw)
    append_directly(paths, [Entry(kind=EntryKind.POLICY, time=now, body=body)])
    store = TrustStore(make_private(f"{paths.state}/trust"))
    if withdraw:
        store.withdraw(root)
    else:
        store.trust(root, digest, by, now)


def this_person(how: str) -> Person:
    """The user that this process runs as, by the passwd entry and never by a variable."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Person(name=name, uid=uid, how=how)


def trust_body(root: str, digest: Sha256, by: Person, *, withdraw: bool) -> dict[str, Json]:
    """What the ledger keeps of it."""
    return {
        "action": "withdraw" if withdraw else "trust",
        "root": root,
        "digest": digest,
        "by": {"name": by.name, "uid": by.uid, "how": by.how},
    }
