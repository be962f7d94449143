# Moves .git away and plants another with a hook of its own, round any cover of .git/hooks.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git, rename, hooks
# after: git
mv .git src/.old-git || { mkdir -p src/.old-git && cp -a .git/. src/.old-git/ && rm -rf .git; }
cp -a src/.old-git .git
mkdir -p .git/hooks
rm -f .git/hooks/post-commit
printf '#!/bin/sh\ntouch "%s"\n' "$1" >.git/hooks/post-commit
chmod 755 .git/hooks/post-commit && echo claim: done
