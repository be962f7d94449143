# Replaces .git by a symbolic link to a repository inside the tree.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git, symlink
# after: git
cp -a .git src/store && rm -rf .git
ln -s src/store .git
git config core.fsmonitor "touch '$1'; false" && echo claim: done
