"""Opens the devices that give memory, disks and virtual machines.

family: kernel
judge: holds /dev/mem /dev/kmsg /dev/vda /dev/sda /dev/nvme0n1 /dev/kvm /dev/fuse /dev/port /dev/net/tun /dev/loop-control
trace: /dev/mem, /dev/kvm
"""

import contextlib
import os
import time

names = ("mem", "kmsg", "vda", "sda", "nvme0n1", "kvm", "fuse", "port", "net/tun", "loop-control")
kept = []
for name in names:
    for mode in (os.O_RDONLY, os.O_RDWR):
        with contextlib.suppress(OSError):
            kept.append(os.open(f"/dev/{name}", mode | os.O_NONBLOCK))
time.sleep(0.4)
