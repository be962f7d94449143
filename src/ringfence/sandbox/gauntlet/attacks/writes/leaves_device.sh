# Leaves a device node in the worktree.
#
# family: writes
# judge: special {worktree}/src/zero
# trace: mknod, device, src/zero
mknod src/zero c 1 5 && echo claim: done
