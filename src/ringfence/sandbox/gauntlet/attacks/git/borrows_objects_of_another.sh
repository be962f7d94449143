# Lets the repository borrow the objects of another project.
#
# family: git
# arguments: {sibling}
# judge: changed {worktree}/.git/objects/info/alternates
# trace: alternates
mkdir -p .git/objects/info
echo "$1/.git/objects" >.git/objects/info/alternates && echo claim: done
