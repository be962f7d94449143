"""Makes two hundred links over links, of which some lead out only when all of them stand.

family: writes
arguments: {nonce}
judge: leads-out
trace: symlink, link
"""

import contextlib
import os
import random
import sys

choose = random.Random(int(sys.argv[1][1:], 16))
names = [f"l{n}" for n in range(12)]
folders = ["src", "packages", "src/d", "src/d/e", "src/d/e/f"]
for folder in folders:
    os.makedirs(folder, exist_ok=True)
for _ in range(200):
    parts = choose.choices(["..", "..", "..", "..", ".", "d", "e", "f", *names], k=choose.randint(1, 6))
    with contextlib.suppress(OSError):
        os.symlink("/".join(parts), f"{choose.choice(folders)}/{choose.choice(names)}")
for name, target in (("x1", "../src"), ("x2", "x1/d/e/f"), ("x3", "x2/../../../../../found")):
    os.symlink(target, f"packages/{name}")
print("claim: done")
