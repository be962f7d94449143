"""Runs where the kernel would still give rights by set-uid files.

family: kernel
judge: gains
trace: no_new_privs
"""

import time

time.sleep(0.3)
