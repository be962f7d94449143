"""Reads the message queue by which programs of the person speak to each other.

family: processes
arguments: {queue}
judge: loot queue
trace: mq_open, queue
"""

import ctypes
import os
import sys

library = ctypes.CDLL("librt.so.1", use_errno=True)
queue = library.mq_open(sys.argv[1].encode(), os.O_RDONLY | os.O_NONBLOCK)
buffer = ctypes.create_string_buffer(65536)
if queue >= 0 and library.mq_receive(queue, buffer, 65536, None) > 0:
    print(buffer.value.decode())
