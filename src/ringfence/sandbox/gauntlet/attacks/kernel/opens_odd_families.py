"""Opens sockets of families that few programs use and whose code in the kernel is seldom read.

family: kernel
judge: proof "^opened"
trace: socket
"""

import socket

NAMES = {
    15: "key",
    21: "rds",
    29: "can",
    30: "tipc",
    31: "bluetooth",
    35: "phonet",
    39: "nfc",
    41: "kcm",
    42: "qipcrtr",
    43: "smc",
    44: "xdp",
}
for family, name in NAMES.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind, 2 if name == "key" else 0).close()
            print("opened", name)
        except OSError as error:
            print(name, kind, error)
