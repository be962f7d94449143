"""Makes two links that stay inside, and in a later run turns the first so that the second leads out.

family: writes
judge: leads-out
trace: symlink, link
runs: 2
"""

import os

if not os.path.lexists("src/bent"):
    os.makedirs("src/p/q/r")
    os.symlink("p/q/r", "src/near")
    os.symlink("near/../../../found", "src/bent")
else:
    os.unlink("src/near")
    os.symlink(".", "src/near")
    print("claim: done")
