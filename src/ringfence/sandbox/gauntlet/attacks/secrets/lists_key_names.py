"""Lists the names of the person's keys in the kernel's own table.

family: secrets
judge: shown gauntlet-{nonce}
trace: /proc/keys, keys
"""

with open("/proc/keys") as file:
    print(file.read())
