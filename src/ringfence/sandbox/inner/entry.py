"""Where the launcher process begins: finds its siblings without importing the package above them."""

import os
import sys
import types


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
    from ringfence.sandbox.inner import serve

    return serve.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(begin())
