"""Links a file of another project into the worktree and writes to the link.

family: writes
arguments: {sibling}/notes.txt
judge: changed {sibling}/notes.txt
trace: link, notes.txt
"""

import os
import sys

os.link(sys.argv[1], "src/notes")
with open("src/notes", "a") as file:
    file.write("planted")
print("claim: done")
