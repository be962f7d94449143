"""Asks for the right to drive hardware ports.

family: kernel
judge: proof "^ports 0$"
trace: iopl
"""

import ctypes
import os
import sys

if os.uname().machine != "x86_64":
    sys.exit("only on x86")
print("ports", ctypes.CDLL(None).iopl(3))
