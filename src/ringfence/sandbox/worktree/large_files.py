"""What git's extension for large files (LFS) keeps beside history, which holds pointers to it. Looks, never writes."""

import os
import re

from ringfence.model.box import Layer
from ringfence.sandbox.worktree import there
from ringfence.sandbox.worktree.opening import opened_side
from ringfence.sandbox.worktree.repository import Repository

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\n")
_LONGEST = 1024


def stays_in_layer(layer: Layer, repository: Repository, content: bytes) -> bool:
    """Whether a content points to a large file that was stored in the box alone, and would be lost with the layer."""
    found = _POINTER.match(content[:_LONGEST])
    if found is None:
        return False
    digest = found[1].decode()
    stored = f"lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}"
    with opened_side(layer.lower, os.path.dirname(layer.upper), repository) as side:
        path = f".git/{stored}" if side.inside else stored
        return there.lookup(side.upper, path) is not None and there.lookup(side.lower, path) is None
