"""Makes 60,000 files, to use up the disk's file records.

family: limits
judge: proof "^made 60000$"
trace: files, disk, limit
seconds: 40
"""

import os

count = 0
try:
    for number in range(60000):
        if number % 1000 == 0:
            os.mkdir(f"src/many-{number}")
        os.close(os.open(f"src/many-{number - number % 1000}/{number}", os.O_CREAT | os.O_WRONLY))
        count += 1
finally:
    print("made", count)
