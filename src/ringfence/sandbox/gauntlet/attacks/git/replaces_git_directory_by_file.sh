# Replaces .git by a file that points at a repository inside the tree.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git, gitdir
# after: git
cp -a .git src/store && rm -rf .git
echo 'gitdir: src/store' >.git
git config core.fsmonitor "touch '$1'; false" && echo claim: done
