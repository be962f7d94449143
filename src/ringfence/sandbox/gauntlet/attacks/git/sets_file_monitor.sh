# Sets a file monitor program, which every git status runs.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git/config, fsmonitor
# after: git
git config core.fsmonitor "touch '$1'; false" && echo claim: done
