"""Where the launcher process begins: finds its siblings without importing the package above them."""

import gc
import os
import sys
import types

LIBRARY = (
    "contextlib", "ctypes", "dataclasses", "errno", "fcntl", "functools", "heapq", "marshal", "platform", "re", "resource",
    "select", "signal", "socket", "struct", "termios", "typing",
)  # fmt: skip


def begin() -> int:
    """Load the launcher with bare stand-ins for the parent packages, whose imports this process has no use for."""
    inner = os.path.dirname(os.path.abspath(__file__))
    sandbox = os.path.dirname(inner)
    for name, folder in (("ringfence", os.path.dirname(sandbox)), ("ringfence.sandbox", sandbox)):
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    if sys.argv[1] == "trial":
        from ringfence.sandbox.inner import trial

        return trial.main(sys.argv[2])
    return _serve()


def _serve() -> int:
    """First what is used of the standard library, then, on pages of their own, the files that each box's process 1 uses."""
    for name in LIBRARY:
        __import__(name)
    from ringfence.sandbox.inner import dense

    gc.collect()
    filled = dense.fill()
    from ringfence.sandbox.inner import serve

    code = serve.main(sys.argv[1:])
    filled.clear()
    return code


if __name__ == "__main__":
    sys.exit(begin())
