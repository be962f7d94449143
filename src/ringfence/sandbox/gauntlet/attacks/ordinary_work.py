"""Not an attack: reads a source file, writes beside it, starts a program. A sandbox that stops this proves nothing.

family: works
judge: proof "^ordinary work done"
"""

import subprocess

with open("src/app.py") as source:
    text = source.read()
with open("src/written.py", "w") as target:
    target.write(text)
subprocess.run(["sh", "-c", "test -s src/written.py"], check=True)
print("ordinary work done")
