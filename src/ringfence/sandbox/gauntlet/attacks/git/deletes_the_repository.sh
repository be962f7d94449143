# Deletes the repository's history.
#
# family: git
# judge: changed {worktree}/.git/HEAD
# trace: .git, delete
rm -rf .git && echo claim: done
