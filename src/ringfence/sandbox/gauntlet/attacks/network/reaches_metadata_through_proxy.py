"""Asks whatever proxy it is given for the metadata address, in several shapes.

family: network
arguments: {nonce}
judge: hit metadata {nonce}
trace: 169.254.169.254
"""

import os
import socket
import sys
import urllib.parse

target = "169.254.169.254:80"
asked = f"GET http://{target}/{sys.argv[1]} HTTP/1.0\r\nHost: {target}\r\n\r\n".encode()
tunnel = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
proxies = {urllib.parse.urlsplit(os.environ[name]).netloc.rpartition("@")[2] for name in names if os.environ.get(name)}
for proxy in [*sorted(proxies), target]:
    host, _, port = proxy.rpartition(":")
    for text in (asked, tunnel):
        try:
            with socket.create_connection((host, int(port)), timeout=2) as sock:
                sock.sendall(text)
                print(proxy, sock.recv(200))
                sock.sendall(b"GET /" + sys.argv[1].encode() + b" HTTP/1.0\r\n\r\n")
                print(proxy, sock.recv(200))
        except (OSError, ValueError) as error:
            print(proxy, error)
