"""Opens userfaultfd through its device file.

family: kernel
judge: holds "anon_inode:[userfaultfd]"
trace: /dev/userfaultfd
"""

import fcntl
import os
import time

device = os.open("/dev/userfaultfd", os.O_RDWR)
fcntl.ioctl(device, 0xAA00, 0)
print("claim: done", flush=True)
time.sleep(0.4)
