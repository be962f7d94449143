"""An RFC 3161 anchor: a time stamp authority signs the digest of a checkpoint. Needs ``ringfence[timestamp]``.

A token proves that the head existed at its time. It lies on our own disk, so it can be lost: pair it with an anchor
that remembers elsewhere.
"""

import contextlib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringfence.ledger import note
from ringfence.ledger.anchors import RootAt, refuse_rewind, unreadable
from ringfence.ledger.files import read_small
from ringfence.ledger.segment import replace
from ringfence.model.errors import LedgerError

SECONDS, HOUR = 20, 3600
_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{20})\.checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampAnchor:
    """A time stamp authority at ``url``; ``roots`` is a PEM file with the certificates that are trusted."""

    url: str
    roots: str
    folder: str

    @property
    def name(self) -> str:
        """How it is written in configuration."""
        return f"rfc3161:{self.url}#{self.roots}"

    def heads(self) -> Mapping[str, note.Checkpoint]:
        """The newest stamped checkpoint of every log; each token is verified. Raises ``anchor-unreadable``."""
        return {log: head for log, (head, _) in self.stamped().items()}

    def stamped(self) -> Mapping[str, tuple[note.Checkpoint, bytes]]:
        """The same, each with its token. Raises ``anchor-unreadable``."""
        found: dict[str, tuple[note.Checkpoint, bytes]] = {}
        for log, (*_, name) in self._names().items():
            path = f"{self.folder}/{name}"
            try:
                text = read_small(path, note.LONGEST)
                token = read_small(path.replace(".checkpoint", ".tsr"))
            except OSError as error:
                raise unreadable(path, os.strerror(error.errno or 0)) from error
            head = note.parse(text)
            if head is None or head.origin != note.origin(log):
                raise unreadable(path, "it is not a checkpoint")
            self._verify(token, text, path)
            found[log] = (head, token)
        return found

    def _names(self) -> dict[str, list[str]]:
        """The files of stamped heads of every log, the newest last."""
        found: dict[str, list[str]] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(self.folder)):
                if match := _NAME.fullmatch(name):
                    found.setdefault(match[1], []).append(name)
        return found

    def _thin(self, log: str) -> None:
        """Of the last three stamps the middle one goes where they lie within an hour: there would be one a minute."""
        last = [f"{self.folder}/{name}" for name in self._names().get(log, [])[-3:]]
        if len(last) == 3 and os.stat(last[2]).st_mtime - os.stat(last[0]).st_mtime < HOUR:
            os.unlink(last[1])
            os.unlink(last[1].replace(".checkpoint", ".tsr"))

    def push(self, log: str, head: note.Checkpoint, root_at: RootAt) -> str:
        """Have the head stamped and keep the token; returns the token's time and serial number."""
        client = _client()
        refuse_rewind(self.name, self.heads(), log, head, root_at)
        text = head.text()
        request = client.TimestampRequestBuilder().data(text).build()
        answer = self._ask(request.as_bytes())
        response = self._verify(answer, text, self.url)
        base = f"{self.folder}/{log}-{head.size:020d}"
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        replace(f"{base}.tsr", answer)
        replace(f"{base}.checkpoint", text)
        self._thin(log)
        info = response.tst_info
        return f"{info.gen_time.isoformat()} serial {info.serial_number}"

    def _ask(self, request: bytes) -> bytes:
        headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
        asked = urllib.request.Request(self.url, data=request, headers=headers, method="POST")  # noqa: S310 - parse_anchor admits http and https only
        try:
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310 - the same
                return bytes(answer.read(1 << 20))
        except (OSError, urllib.error.URLError, ValueError) as error:
            raise unreadable(self.name, f"the authority does not answer: {type(error).__name__}") from error

    def _verify(self, token: bytes, text: bytes, place: str) -> Any:
        client = _client()
        from cryptography.x509 import load_pem_x509_certificates

        try:
            with open(self.roots, "rb") as stream:
                roots = load_pem_x509_certificates(stream.read())
            builder = client.VerifierBuilder()
            for certificate in roots:
                builder = builder.add_root_certificate(certificate)
            response = client.decode_timestamp_response(token)
            builder.build().verify_message(response, text)
        except (OSError, ValueError, client.VerificationError) as error:
            raise unreadable(place, f"its time stamp does not verify: {error}") from error
        return response


def _client() -> Any:
    try:
        import rfc3161_client
    except ImportError as error:
        raise LedgerError(
            "bad-anchor", "time stamps need an extra package", remedy="install ringfence with the extra `timestamp`"
        ) from error
    return rfc3161_client
