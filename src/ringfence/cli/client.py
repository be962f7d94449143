"""The thin client as a program: ``/abs/python -I -S /abs/.../cli/client.py run -- COMMAND``. Hooks start ringfence so.

No site packages, no environment: this file's own place says where the rest is.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ringfence.cli.main import program

if __name__ == "__main__":
    program()
