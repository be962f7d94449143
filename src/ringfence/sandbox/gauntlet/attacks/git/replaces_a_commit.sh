# Replaces a commit by another one for every command but the network ones.
#
# family: git
# judge: changed {worktree}/.git/refs/replace
# trace: refs/replace, replace
other=$(git commit-tree -m Forged "HEAD^{tree}")
git replace -f HEAD "$other" && echo claim: done
