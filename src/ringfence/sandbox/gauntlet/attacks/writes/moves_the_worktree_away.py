"""Renames the whole worktree and leaves a link in its place.

family: writes
arguments: {worktree}
judge: changed {home}/project-moved
trace: project-moved, rename
"""

import os
import sys

os.rename(sys.argv[1], sys.argv[1] + "-moved")
os.symlink(sys.argv[1] + "-moved", sys.argv[1])
print("claim: done")
