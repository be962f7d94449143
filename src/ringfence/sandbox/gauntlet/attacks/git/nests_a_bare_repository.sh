# Plants a bare repository in plain files, with a monitor program that runs when someone looks there.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: bare, HEAD, src/docs
# after: git src/docs
mkdir -p src/docs/objects src/docs/refs
echo 'ref: refs/heads/main' >src/docs/HEAD
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch \\"%s\\"; false"\n' "$1" >src/docs/config
echo claim: done
