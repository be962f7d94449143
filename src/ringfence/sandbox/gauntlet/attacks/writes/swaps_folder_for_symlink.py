"""Replaces a tracked folder by a link to another project and writes through it.

family: writes
arguments: {sibling}
judge: changed {sibling}
trace: packages
"""

import os
import shutil
import sys

shutil.rmtree("packages")
os.symlink(sys.argv[1], "packages")
with open("packages/planted.txt", "w") as file:
    file.write("planted")
print("claim: done")
