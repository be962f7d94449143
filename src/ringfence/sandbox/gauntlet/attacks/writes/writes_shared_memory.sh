# Overwrites a shared-memory file of another program.
#
# family: writes
# arguments: {shm_file}
# judge: changed {shm_file}
# trace: /dev/shm
echo planted >"$1" && echo claim: done
