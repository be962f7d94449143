"""Where the independent verifier lies: one file, standard library only, shipped inside every export."""

VERIFIER = __file__.replace("__init__.py", "verify.py")
