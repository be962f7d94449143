"""Takes away what covers a hidden file: removes it, makes it anew, renames and removes the folder above it.

family: secrets
judge: loot env-file env-nested
trace: .env
"""

import contextlib
import os
import shutil


def show(path: str) -> None:
    """Print the file, if it can be read."""
    with contextlib.suppress(OSError), open(path) as file:
        print(file.read())


show(".env")
for path in (".env", "packages/api/.env.local"):
    with contextlib.suppress(OSError):
        os.unlink(path)
        show(path)
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        os.unlink(path)
        show(path)
    with contextlib.suppress(OSError):
        os.rename(path, "src/uncovered")
        show("src/uncovered")
with contextlib.suppress(OSError):
    os.rename("packages/api", "packages/other")
    show("packages/other/.env.local")
with contextlib.suppress(OSError):
    shutil.move("packages", "moved")
    show("moved/api/.env.local")
    show("moved/other/.env.local")
with contextlib.suppress(OSError):
    os.makedirs("packages/api")
    show("packages/api/.env.local")
    shutil.rmtree("packages")
    show("packages/api/.env.local")
