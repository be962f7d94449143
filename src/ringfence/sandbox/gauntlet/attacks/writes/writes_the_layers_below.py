"""Writes into the tree by the paths of the layers below, which the table of mounts names.

family: writes
arguments: {worktree}
judge: changed {worktree}/.git/hooks
trace: lowerdir, upperdir, hooks, /
"""

import contextlib
import os
import re
import sys

with open("/proc/self/mountinfo") as file:
    text = file.read()
layers = {part for found in re.findall(r"(?:lower|upper|work)dir[+]?=([^, \n]+)", text) for part in found.split(":")}
layers |= {line.split()[3] for line in text.splitlines()} | {sys.argv[1]}
for layer in sorted(layers):
    with contextlib.suppress(OSError), open(os.path.join(layer, ".git/hooks/post-commit"), "w") as file:
        file.write("#!/bin/sh\n")
        print("claim: done")
