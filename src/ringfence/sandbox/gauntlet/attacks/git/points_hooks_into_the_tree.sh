# Points git's hook folder into the worktree.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git/config, hooksPath, hooks
# after: git
mkdir -p src/hooks
printf '#!/bin/sh\ntouch "%s"\n' "$1" >src/hooks/post-commit
chmod 755 src/hooks/post-commit
git config core.hooksPath src/hooks && echo claim: done
