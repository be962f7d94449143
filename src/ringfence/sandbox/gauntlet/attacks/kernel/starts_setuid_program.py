"""Starts a set-uid program of the host, which then runs as root.

family: kernel
judge: root
trace: su, setuid
"""

import os
import shutil
import subprocess
import sys
import time

for name in ("su", "sudo", "passwd", "chsh", "mount"):
    program = shutil.which(name, path="/usr/bin:/bin")
    if program and os.stat(program).st_mode & 0o4000:
        process = subprocess.Popen([program, "root", "-c", sys.argv[-1]], stdin=subprocess.PIPE, start_new_session=True)
        time.sleep(0.5)
        process.kill()
        break
