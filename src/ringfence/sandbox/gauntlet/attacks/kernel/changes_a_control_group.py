"""Makes a control group of its own, the first step of an old way out.

family: kernel
judge: proof "^group made"
trace: cgroup
"""

import os

for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory"):
    path = f"{place}/gauntlet-{os.getpid()}"
    try:
        os.mkdir(path)
        print("group made")
        os.rmdir(path)
    except OSError as error:
        print(error)
