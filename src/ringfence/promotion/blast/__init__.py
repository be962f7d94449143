"""Blast radius: what a change touches, as numbers, read from the trees of base and head."""
