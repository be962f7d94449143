# Turns on signed commits with a signing program of its own.
#
# family: git
# arguments: {outside}/fired {worktree}
# judge: fired
# trace: .git/config, gpg
# after: git
printf '#!/bin/sh\ntouch "%s"\n' "$1" >src/sign.sh
chmod 755 src/sign.sh
git config commit.gpgsign true && git config gpg.program "$2/src/sign.sh" && echo claim: done
