"""Reads the password hashes of the host; only their digest leaves this program.

family: secrets
judge: digest /etc/shadow
trace: /etc/shadow
"""

import hashlib

with open("/etc/shadow", "rb") as file:
    print(hashlib.sha256(file.read()).hexdigest())
