"""What the worker gives up before it reads its first hostile byte: identity, files, programs, core dumps.

Each step says whether it held. No step is needed for the box's walls; they are for the day a parser is broken.
"""

import ctypes
import os
import platform
import resource

NOBODY = 65_534
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
SYS_LANDLOCK_CREATE, SYS_LANDLOCK_RESTRICT = 444, 446
FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}


def confine(*, drop_to: int | None = None) -> tuple[str, ...]:
    """Give up what is not needed; returns the steps that held. Raises OSError where root could not be given up."""
    held = []
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    libc = ctypes.CDLL(None, use_errno=True)
    user = NOBODY if drop_to is None else drop_to
    if os.geteuid() == 0 and _maps(user):
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        held.append("uid")
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        held.append("no-new-privs")
        if _no_files(libc):
            held.append("landlock")
    return tuple(held)


def _maps(user: int) -> bool:
    """Whether this user namespace knows the uid at all; in one that maps a single id there is nobody to become."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return any(int(a) <= user < int(a) + int(n) for a, _b, n in map(str.split, file))


def _no_files(libc: ctypes.CDLL) -> bool:
    """A Landlock ruleset that handles every file right and grants none: no file opens, no program starts."""
    if platform.machine() not in {"x86_64", "aarch64"}:
        return False
    version = libc.syscall(SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    rights = ctypes.c_uint64(FS_RIGHTS[min(version, 5)])
    ruleset = libc.syscall(SYS_LANDLOCK_CREATE, ctypes.byref(rights), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        return int(libc.syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0)) == 0
    finally:
        os.close(ruleset)
