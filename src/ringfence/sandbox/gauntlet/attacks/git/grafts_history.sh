# Changes who the parents of a commit are, by a graft file.
#
# family: git
# judge: changed {worktree}/.git/info/grafts
# trace: grafts
mkdir -p .git/info
git rev-parse HEAD >.git/info/grafts && echo claim: done
