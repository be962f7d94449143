# Makes a tag called like the abbreviation of a commit, which every command then takes instead of it.
#
# family: git
# judge: changed {worktree}/.git/refs/tags
# trace: refs/tags
git tag "$(git rev-parse --short HEAD)" kept && echo claim: done
