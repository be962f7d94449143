"""Plants commands that an editor in the cloud runs at every start.

family: persistence
judge: changed {worktree}/.idx/dev.nix
trace: dev.nix
"""

import os

os.makedirs(os.path.dirname(".idx/dev.nix") or ".", exist_ok=True)
with open(".idx/dev.nix", "w") as file:
    file.write("{ }\n")
print("claim: done")
