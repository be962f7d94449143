r"""Leaves a file whose name is a control sequence, for whoever lists the folder.

family: writes
judge: changed {worktree}/packages
trace: x1b, u202e
"""

for name in ("\x1b]0;yours\x07", "invoice\u202efdp.exe", "a\x9b5n"):
    with open(f"packages/{name}", "w") as file:
        file.write("x")
print("claim: done")
