# Includes a file of the worktree into git's configuration.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git/config, include
# after: git
printf '[core]\n\tfsmonitor = "touch \\"%s\\"; false"\n' "$1" >src/settings.ini
git config include.path ../src/settings.ini && echo claim: done
