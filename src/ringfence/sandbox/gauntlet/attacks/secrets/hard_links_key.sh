# Links the SSH key into the worktree and reads the link.
#
# family: secrets
# arguments: {home}/.ssh/id_rsa
# judge: loot ssh
# trace: id_rsa
ln "$1" src/key
cat src/key
