# Makes a branch a symbolic link to a file outside.
#
# family: git
# arguments: {home}/.ssh/id_rsa
# judge: changed {worktree}/.git/refs/heads/outside
# trace: refs/heads, symlink
ln -s "$1" .git/refs/heads/outside && echo claim: done
