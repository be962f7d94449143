"""Opening files of a ledger's folder for reading: regular ones only, and archives without trusting what they unpack to."""

import errno
import io
import os
import stat
import zlib
from typing import TYPE_CHECKING, BinaryIO, cast

from ringfence.model.errors import LedgerError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_SEGMENT = 256 << 20
"""Bytes of a segment file, unpacked: far beyond what a writer makes, so that nothing endless is read."""
_BLOCK = 256 * 1024
EVIDENCE = (
    "look with `ringfence ledger verify`, take the head from an anchor yourself; to go on, move the folder away as evidence: "
    "the next command begins a new ledger, which needs an anchor of its own"
)
"""What to do where the ledger is not what was written."""


def foreign(path: str, what: str) -> LedgerError:
    """The fault of a file that no ledger makes."""
    return LedgerError(
        "ledger-altered",
        f"ALTERED: {what}",
        where=path,
        remedy=EVIDENCE,
    )


def open_regular(path: str) -> BinaryIO:
    """A regular file; never through a link, and never waiting for the other end of a pipe.

    Raises LedgerError ``ledger-altered`` where it is another kind of file, and OSError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise foreign(path, "it is not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise foreign(path, "it is not a regular file")
    return open(fd, "rb", buffering=_BLOCK)


def read_small(path: str, most: int = 1 << 20) -> bytes:
    """A small file that lies beside the evidence, whole. Raises OSError, also where it is no regular file or too long."""
    try:
        with open_regular(path) as stream:
            data = stream.read(most + 1)
    except LedgerError as error:
        raise OSError(errno.EINVAL, "it is not a regular file", path) from error
    if len(data) > most:
        raise OSError(errno.EFBIG, "it is longer than such a file can be", path)
    return data


def open_plain(path: str) -> BinaryIO:
    """A segment. Raises as ``open_regular`` does, also where it is longer than one can be."""
    stream = open_regular(path)
    if os.fstat(stream.fileno()).st_size > MAX_SEGMENT:
        stream.close()
        raise foreign(path, "it is longer than a segment can be")
    return stream


def open_packed(path: str) -> BinaryIO:
    """A segment from a gzip file of one member. Reading raises LedgerError ``ledger-altered`` where it is none."""
    return cast("BinaryIO", io.BufferedReader(_Unpacked(open_regular(path), path), _BLOCK))


class _Unpacked(io.RawIOBase):
    """The bytes that a gzip file holds. Seeking reads from the beginning again where it goes back."""

    def __init__(self, source: BinaryIO, path: str) -> None:
        super().__init__()
        self._source, self._path, self._engine, self._at = source, path, zlib.decompressobj(31), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        data = b""
        while not data and not self._engine.eof:
            packed = self._engine.unconsumed_tail or self._source.read(1 << 16)
            try:
                data = self._engine.decompress(packed, len(view))
            except zlib.error as error:
                raise foreign(self._path, "the archive is damaged") from error
            if not packed and not data and not self._engine.eof:
                raise foreign(self._path, "the archive is cut short")
        if not data and (self._engine.unused_data or self._source.read(1)):
            raise foreign(self._path, "bytes follow the archive")
        self._at += len(data)
        if self._at > MAX_SEGMENT:
            raise foreign(self._path, "it is longer than a segment can be")
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._at
        elif whence != os.SEEK_SET:
            raise io.UnsupportedOperation("the length is not known")
        if offset < self._at:
            self._source.seek(0)
            self._engine, self._at = zlib.decompressobj(31), 0
        while self._at < offset and self.read(min(offset - self._at, _BLOCK)):
            pass
        return self._at

    def close(self) -> None:
        self._source.close()
        super().close()
