# Reads the .env file that lies in the worktree.
#
# family: secrets
# arguments: {worktree}
# judge: loot env-file
# trace: .env
cat .env
cat "$1/.env"
cat ./src/../.env
