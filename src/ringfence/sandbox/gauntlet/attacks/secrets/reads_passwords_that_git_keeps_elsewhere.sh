# Reads the passwords that git keeps beside its configuration: logs of references, saved credentials, old remotes, backups.
#
# family: secrets
# judge: loot git-log git-saved git-old-remote git-backup git-module
# trace: .git/logs, .git/credentials, .git/remotes, .git/config.bak, .git/modules
cat .git/logs/HEAD .git/credentials .git/remotes/backup .git/config.bak .git/modules/lib/config
git log -g -1 --format=%gs
git reflog
