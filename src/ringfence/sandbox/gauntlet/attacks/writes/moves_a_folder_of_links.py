"""Makes a link that climbs inside a deep folder, and in a later run replaces the deep folder by a shallow link.

family: writes
judge: leads-out
trace: symlink, link
runs: 2
"""

import os
import shutil

if not os.path.lexists("src/a/b/c/up"):
    os.makedirs("src/a/b/c")
    os.makedirs("packages/x")
    os.symlink("../../../app.py", "src/a/b/c/up")
    os.symlink("../src/a/b/c/../../..", "packages/out")
else:
    shutil.rmtree("src/a/b")
    os.symlink("../..", "src/a/b")
    os.makedirs("c", exist_ok=True)
    print("claim: done")
