r"""Makes a file whose name is a clipboard sequence where the fence must refuse and name it.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\]52;c;"
trace: hooks
terminal: yes
"""

import os
import sys

os.makedirs(".git/hooks", exist_ok=True)
for folder in (".git/hooks/", ".vscode/", "src/"):
    os.makedirs(folder, exist_ok=True)
    with open(folder + "\x1b]52;c;TlVMTA==" + sys.argv[1] + "\x07", "w") as file:
        file.write("planted")
sys.stderr.write("\x1b]52;c;TlVMTA==\x07")
