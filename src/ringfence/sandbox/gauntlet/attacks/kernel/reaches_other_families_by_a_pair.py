"""Reaches code of the kernel for odd networks through a pair of sockets, which filters of single sockets forget.

family: kernel
judge: proof "^reached"
trace: socketpair, vsock
"""

import errno
import socket

REFUSALS = {errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES, errno.ENOSYS}
for family in (40, 30, 17, 38):  # between machines, clusters, packets, ciphers
    try:
        socket.socketpair(family, socket.SOCK_STREAM, 0)
    except OSError as fault:
        if fault.errno not in REFUSALS:
            print("reached", family, errno.errorcode.get(fault.errno or 0))
    else:
        print("reached", family)
