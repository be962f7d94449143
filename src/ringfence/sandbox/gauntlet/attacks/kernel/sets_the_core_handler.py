"""Writes the kernel setting by which a crash starts a program as root (the value stays what it was).

family: kernel
judge: proof "^core handler written"
trace: core_pattern
"""

with open("/proc/sys/kernel/core_pattern") as file:
    value = file.read()
with open("/proc/sys/kernel/core_pattern", "w") as file:
    file.write(value)
print("core handler written")
