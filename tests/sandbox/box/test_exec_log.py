"""Programs that a box starts are recorded as they were started, whatever the one who starts them does to be unreadable."""

import pytest

pytestmark = pytest.mark.needs_userns

PRELUDE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
def start(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(9)
    assert os.waitpid(child, 0)[1] == 0
"""


def programs(ran):
    return {o.detail.rpartition(" (parent ")[0] for o in ran.execution.observations if o.kind == "exec"}


def test_a_process_that_lets_nobody_read_it_is_read_all_the_same(bench):
    ran = bench.run("/usr/bin/python3", "-c", PRELUDE + """
PR_SET_DUMPABLE = 4
libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
start(lambda: os.execv("/bin/true", ["true", "not to be seen"]))
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    assert "/bin/true 'not to be seen'" in programs(ran)


def test_a_program_without_a_path_is_named_by_what_its_descriptor_leads_to(bench):
    ran = bench.run("/usr/bin/python3", "-c", PRELUDE + """
def copied(data):
    file = os.memfd_create("hidden", os.MFD_CLOEXEC)
    os.write(file, data)
    return file
true = os.open("/bin/true", os.O_RDONLY | os.O_CLOEXEC)
start(lambda: os.execve(true, ["true", "by number"], {}))
AT_EMPTY_PATH, execveat = 0x1000, {"x86_64": 322, "aarch64": 281}[os.uname().machine]
def bare(file):
    words = (ctypes.c_char_p * 3)(b"anything", b"bare", None)
    libc.syscall(execveat, file, b"", words, (ctypes.c_char_p * 1)(None), AT_EMPTY_PATH)
start(lambda: bare(true))
start(lambda: bare(copied(open("/bin/true", "rb").read())))
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    seen = programs(ran)
    assert any(one.endswith("/true bare") for one in seen), seen
    assert any("memfd:hidden" in one and one.endswith(" bare") for one in seen), seen
