"""The ledger's signing keys: one Ed25519 key an epoch, the present one on disk (0600), older ones destroyed.

cryptography is imported when the first key is used: opening a ledger and appending to it do without.
"""

import os
from typing import TYPE_CHECKING

from ringfence.ledger import note
from ringfence.ledger.files import read_small
from ringfence.ledger.segment import replace, sync_directory
from ringfence.model.errors import LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PRIME, _Y = 2**255 - 19, 2**255 - 1


def key_path(directory: str, epoch: int) -> str:
    """Where the private key of an epoch is kept."""
    return f"{directory}/keys/epoch-{epoch}.key"


def create_key(directory: str, epoch: int) -> bytes:
    """Make and store a new private key; returns the public one (32 bytes)."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    replace(key_path(directory, epoch), private.private_bytes_raw().hex().encode() + b"\n")
    return private.public_key().public_bytes_raw()


def load_key(directory: str, epoch: int) -> "Ed25519PrivateKey":
    """The private key of an epoch. Raises LedgerError ``ledger-key`` where it is missing or not a key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = key_path(directory, epoch)
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(read_small(path, 256).decode().strip()))
    except (OSError, ValueError) as error:
        raise LedgerError(
            "ledger-key",
            f"the signing key of epoch {epoch} cannot be used: {type(error).__name__}",
            where=path,
            remedy="restore the key file from a backup, or keep this ledger read-only and start a new one beside it",
        ) from error


def destroy_key(directory: str, epoch: int) -> None:
    """Overwrite and remove a private key. Nothing happens where it is gone already."""
    path = key_path(directory, epoch)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        os.pwrite(fd, os.urandom(os.fstat(fd).st_size), 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.unlink(path)
    sync_directory(os.path.dirname(path))


def sign(private: "Ed25519PrivateKey", *, log: str, epoch: int, size: int, root: bytes) -> note.Checkpoint:
    """A checkpoint signed with the key of ``epoch``."""
    name = note.key_name(log, epoch)
    unsigned = note.Checkpoint(origin=note.origin(log), size=size, root=root)
    signature = note.Signature(
        name=name,
        key_id=note.key_id(name, private.public_key().public_bytes_raw()),
        value=private.sign(unsigned.body()),
    )
    return note.Checkpoint(origin=unsigned.origin, size=size, root=root, signatures=(signature,))


def verify_signature(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether an Ed25519 signature is good. A key in another than its one spelling (RFC 8032) signs nothing."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    y = int.from_bytes(public, "little") & _Y
    if y >= _PRIME or (y in {1, _PRIME - 1} and public[-1] & 0x80):  # libraries differ in whether they take these
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def rotation_statement(log: str, epoch: int, seq: int, old: bytes, new: bytes) -> bytes:
    """What both keys sign when one follows the other; bound to the log and to the number of the entry that tells it."""
    return f"ringfence key rotation\n{log}\n{epoch}\n{seq}\n{old.hex()}\n{new.hex()}\n".encode()
