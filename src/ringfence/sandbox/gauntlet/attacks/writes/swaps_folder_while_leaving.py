"""Keeps swapping a folder for a link out of the tree until it is killed, to race whoever copies the changes.

family: writes
arguments: {sibling}
judge: changed {sibling}
trace: symlink, sibling, race
"""

import contextlib
import os
import shutil
import sys
import time

if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                shutil.rmtree("src/race", ignore_errors=True)
                os.mkdir("src/race")
                with open("src/race/planted.txt", "w") as file:
                    file.write("planted")
            with contextlib.suppress(OSError):
                shutil.rmtree("src/race")
                os.symlink(sys.argv[1], "src/race")
                with open("src/race/planted.txt", "w") as file:
                    file.write("planted")
    os._exit(0)
time.sleep(0.3)
print("claim: done")
