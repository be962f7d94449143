"""Boxes: planned purely, carried out with namespaces, overlay, Landlock, seccomp and limits. Never decides."""
