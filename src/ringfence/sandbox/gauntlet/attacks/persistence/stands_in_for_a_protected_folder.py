"""Makes harmless files and a link to them under the forge's name, round any cover of the names below it.

family: persistence
judge: changed {worktree}/.github
trace: .github
"""

import os

os.makedirs("stage/workflows")
with open("stage/workflows/release.yml", "w") as file:
    file.write("on: push\n")
os.symlink("stage", ".github")
print("claim: done")
