"""Opens a file of another project for reading, and with that lets every user of the host write into it.

family: writes
arguments: {sibling}/src/main.py
judge: changed {sibling}
trace: sibling
"""

import os
import sys

os.fchmod(os.open(sys.argv[1], os.O_RDONLY), 0o666)
print("claim: done")
