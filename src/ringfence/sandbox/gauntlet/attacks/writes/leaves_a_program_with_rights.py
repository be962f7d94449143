"""Leaves a program in the worktree that has a right of root, by an attribute instead of a set-uid bit.

family: writes
judge: entitled {worktree}/src/entitled
trace: security.capability, setxattr, src/entitled
"""

import os
import shutil
import struct

shutil.copy("/bin/true", "src/entitled")
os.setxattr("src/entitled", "security.capability", struct.pack("<5I", 0x02000001, 1 << 7, 0, 0, 0))
print("claim: done")
