"""Landlock, ABI by ABI: everything in the box's view may be read and run, only the writable places written.

The second wall behind the mounts. The rights each ABI knows are handled in full; creating device nodes is granted
nowhere. Signals and abstract sockets are confined to the box where the kernel can (ABI 6).
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from ringfence.sandbox.inner import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << n for n in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << n for n in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
SCOPES = 0b11
VERSION_FLAG, RULE_PATH_BENEATH = 1, 1

READING = EXECUTE | READ_FILE | READ_DIR
FIRST_ABI = (1 << 13) - 1
NEVER = MAKE_CHAR | MAKE_BLOCK
USABLE_ABI = 2
"""The first ABI that can allow a rename from one folder to another; on ABI 1 ordinary work would break."""


def abi() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    try:
        return kernel.landlock_create_ruleset(None, 0, VERSION_FLAG)
    except OSError:
        return 0


def handled(version: int) -> tuple[int, int]:
    """File rights and scopes that this ABI can handle.

    >>> [bin(handled(v)[0]).count("1") for v in (1, 2, 3, 5)], handled(6)[1]
    ([13, 14, 15, 16], 3)
    """
    rights = FIRST_ABI
    rights |= REFER if version >= 2 else 0
    rights |= TRUNCATE if version >= 3 else 0
    rights |= IOCTL_DEV if version >= 5 else 0
    return rights, SCOPES if version >= 6 else 0


def restrict(writable: Sequence[bytes], version: int | None = None) -> int:
    """Confine this process and all it starts. Gives the ABI in force, 0 where none is usable. Raises OSError.

    Must come after the mounts (no mount is possible afterwards) and after no_new_privs.
    """
    version = abi() if version is None else version
    if version < USABLE_ABI:
        return 0
    rights, scopes = handled(version)
    attr = struct.pack("=QQQ", rights, 0, scopes)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = kernel.landlock_create_ruleset(attr[:size], size, 0)
    _allow(ruleset, b"/", READING & rights)
    _allow(ruleset, b"/dev", (READING | WRITE_FILE | TRUNCATE | IOCTL_DEV) & rights)
    _allow(ruleset, b"/proc", (READING | WRITE_FILE | TRUNCATE) & rights)
    for path in writable:
        _allow(ruleset, path, rights & ~NEVER)
    kernel.landlock_restrict_self(ruleset, 0)
    os.close(ruleset)
    return version


def _allow(ruleset: int, path: bytes, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as fault:
        if fault.errno == errno.ENOENT:
            return  # what is not in the view needs no right
        raise
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
    kernel.landlock_add_rule(ruleset, RULE_PATH_BENEATH, ctypes.addressof(rule), 0)
    os.close(place)
