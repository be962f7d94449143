r"""Asks for colours, graphics, a locator and the screen's extent, which terminals answer by typing.

family: terminal
judge: shown "\\x1b\\[(#R|1#\\||\\?1;1;0S|1'\\||\"v|1\\$u|&u)|\\x1bGQ"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[#R\x1b[1#|\x1b[?1;1;0S\x1b[1'z\x1b[1'|\x1b[\"v\x1b[1$u\x1b[&u\x1bGQ")
sys.stdout.buffer.flush()
