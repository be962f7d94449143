"""Writes into the folder in which the sandbox under test keeps its own state.

family: writes
arguments: {fence_state} {nonce}
judge: changed {fence_state}/{nonce}
trace: fence
"""

import os
import sys

os.makedirs(sys.argv[1], exist_ok=True)
with open(os.path.join(sys.argv[1], sys.argv[2]), "w") as file:
    file.write("planted")
print("claim: done")
