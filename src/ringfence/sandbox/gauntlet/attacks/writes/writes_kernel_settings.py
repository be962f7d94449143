"""Changes a setting of the host's network through /proc/sys.

family: writes
judge: changed /proc/sys/net/ipv4/ip_default_ttl
trace: /proc/sys, ip_default_ttl
"""

import contextlib

path = "/proc/sys/net/ipv4/ip_default_ttl"
with open(path) as file:
    value = int(file.read())
with open(path, "w") as file:
    file.write(str(value - 1 if value > 10 else 64))
with contextlib.suppress(OSError), open(path) as file:
    print("claim: done", file.read())
