"""Takes 700 MiB of the kernel's memory in datagrams that nobody receives.

family: limits
judge: proof "^waiting 7[0-9][0-9]$"
trace: memory
"""

import contextlib
import os
import socket
import time

CHILDREN, SOCKETS = 10, 400


def fill() -> None:
    """One child's sockets."""
    kept = []
    for _ in range(SOCKETS):
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.bind(("127.0.0.1", 0))
        end.setblocking(False)
        kept.append(end)
        with contextlib.suppress(BlockingIOError):
            for _ in range(6):
                end.sendto(bytes(32_000), end.getsockname())
    time.sleep(3)


def waiting() -> int:
    """MiB that wait in all of them."""
    with open("/proc/net/udp") as file:
        return sum(int(line.split()[4].partition(":")[2], 16) for line in file.readlines()[1:]) >> 20


for _ in range(CHILDREN):
    if os.fork() == 0:
        fill()
        os._exit(0)
until = time.monotonic() + 2.5
most = 0
while most < 700 and time.monotonic() < until:
    time.sleep(0.2)
    most = max(most, waiting())
print("waiting", min(most, 799))
