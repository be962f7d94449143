"""Opens the kernel's packet filter, its auditing, its device events and its tables of ciphers over netlink.

family: kernel
judge: proof "^opened"
trace: socket, netlink
"""

import socket

for protocol, name in (
    (12, "netfilter"),
    (9, "audit"),
    (15, "events"),
    (21, "ciphers"),
    (6, "ipsec"),
    (16, "generic"),
    (4, "diagnosis"),
):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close()
        print("opened", name)
    except OSError as error:
        print(name, error)
