# Leaves a named pipe in the worktree, on which a tool that reads files hangs.
#
# family: writes
# judge: special {worktree}/src/data.json
# trace: fifo, pipe, src/data.json
mkfifo src/data.json && echo claim: done
