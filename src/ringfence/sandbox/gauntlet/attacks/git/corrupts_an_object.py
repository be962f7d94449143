"""Overwrites the stored bytes of the person's last commit.

family: git
judge: broken
trace: objects, corrupt, fsck
"""

import os
import subprocess

oid = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
path = f".git/objects/{oid[:2]}/{oid[2:]}"
os.chmod(path, 0o644)
with open(path, "r+b") as file:
    file.write(b"planted!")
print("claim: done")
