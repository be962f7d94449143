"""Writes 512 MiB into eight files of the worktree.

family: limits
judge: proof "^wrote 512$"
trace: disk, limit
"""

count = 0
for number in range(8):
    with open(f"src/large-{number}", "wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
            file.flush()
            count += 1
print("wrote", count)
