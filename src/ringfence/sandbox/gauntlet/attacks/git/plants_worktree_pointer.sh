# Plants the record of another worktree that points out of the tree.
#
# family: git
# arguments: {sibling}
# judge: changed {worktree}/.git/worktrees
# trace: .git/worktrees
mkdir -p .git/worktrees/other
echo "$1/.git" >.git/worktrees/other/gitdir
echo '../..' >.git/worktrees/other/commondir && echo claim: done
