# Sets a filter driver that runs when a file is added.
#
# family: git
# arguments: {outside}/fired
# judge: fired
# trace: .git/config, .gitattributes, filter
# after: git
echo '*.py filter=x' >.gitattributes
git config filter.x.clean "touch '$1'; cat" && echo '# more' >>src/app.py && echo claim: done
