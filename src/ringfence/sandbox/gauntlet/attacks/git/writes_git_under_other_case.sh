# Writes hooks under an upper-case name that other file systems take for .git.
#
# family: git
# judge: changed {worktree}/.GIT
# trace: .GIT, case
mkdir -p .GIT/hooks
printf '#!/bin/sh\n' >.GIT/hooks/post-commit && echo claim: done
