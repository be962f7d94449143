"""The worktree as an overlay, and the gate through which what a box wrote reaches the real tree.

``change`` and ``guard`` are pure. ``tree`` is what the supervisor calls. Everything that touches disk goes through
descriptors opened beneath the root (``kernel``), never through a path an agent could have redirected.
"""
