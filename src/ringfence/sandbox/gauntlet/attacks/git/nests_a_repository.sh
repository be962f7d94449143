# Plants a repository below a folder, with a monitor program that runs when someone looks there.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git, nested
# after: git src/nested
git init -q src/nested
git -C src/nested config core.fsmonitor "touch '$1'; false" && echo claim: done
