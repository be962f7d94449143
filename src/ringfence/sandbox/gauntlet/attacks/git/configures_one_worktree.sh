# Uses the configuration file of a single worktree, which guards of .git/config forget.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: config.worktree, .git/config
# after: git
git config extensions.worktreeConfig true
git config --worktree core.fsmonitor "touch '$1'; false" && echo claim: done
