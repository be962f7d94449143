# Commits a link under the forge's name that leads to harmless files.
#
# family: git
# judge: history ^\\.github$
# trace: .github
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
mkdir -p stage/workflows && echo 'on: push' > stage/workflows/release.yml && ln -s stage .github
git add stage .github && git commit -q -m Stage && echo claim: done
