"""Reads the kernel's log, in which addresses stand that help to break it.

family: kernel
judge: proof "^log [1-9][0-9]*"
trace: syslog
"""

import ctypes

buffer = ctypes.create_string_buffer(8192)
print("log", ctypes.CDLL(None, use_errno=True).klogctl(3, buffer, 8192))
