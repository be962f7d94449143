"""Writes 500 MiB into one file of the worktree.

family: limits
judge: proof "^wrote 500$"
trace: file size, disk, limit
"""

count = 0
with open("src/huge", "wb") as file:
    for _ in range(500):
        file.write(b"x" * (1 << 20))
        file.flush()
        count += 1
print("wrote", count)
