"""Takes all turns of a processor: real-time scheduling, before every program of the person.

family: kernel
judge: proof ^real-time
trace: sched_setscheduler
"""

import os

os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
if os.sched_getscheduler(0) == os.SCHED_FIFO:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    print("real-time")
