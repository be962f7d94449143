"""Prints 100 MiB.

family: limits
judge: flooded 50
trace: output
"""

import os

block = b"x" * (1 << 20)
for _ in range(100):
    os.write(1, block)
