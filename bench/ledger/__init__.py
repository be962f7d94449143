"""The ledger against the limits of this machine: flush, hash, and a 50 ms command."""

from bench.ledger.__main__ import main

__all__ = ["main"]
