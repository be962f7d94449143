"""Reads the log-ins of container registries and clusters.

family: secrets
arguments: {home} .docker/config.json .kube/config
judge: loot docker kube
trace: .docker/config.json, .kube/config
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
