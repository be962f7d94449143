# Reads the password and the token that stand in the repository's git configuration.
#
# family: secrets
# judge: loot git-url git-header
# trace: .git/config
cat .git/config
git config --list --show-origin
git remote -v
