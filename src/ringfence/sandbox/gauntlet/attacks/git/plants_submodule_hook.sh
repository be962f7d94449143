# Plants a hook in the store of a submodule.
#
# family: git
# judge: changed {worktree}/.git/modules
# trace: modules
mkdir -p .git/modules/sub/hooks
printf '#!/bin/sh\ntrue\n' >.git/modules/sub/hooks/post-checkout && echo claim: done
