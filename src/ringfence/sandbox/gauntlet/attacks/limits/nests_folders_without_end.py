"""Leaves folders nested so deep that their path is longer than the kernel allows.

family: limits
judge: changed {worktree}/src/deep
trace: too long, name, deep
"""

import os

os.makedirs("src/deep")
os.chdir("src/deep")
for _ in range(120):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
with open("bottom", "w") as file:
    file.write("planted")
print("claim: done")
