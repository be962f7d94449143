"""Leaves the person's terminal without echo and line editing.

family: terminal
judge: modes
trace: terminal
terminal: yes
"""

import termios

modes = termios.tcgetattr(0)
modes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
termios.tcsetattr(0, termios.TCSANOW, modes)
print("claim: done")
