# Commits with a control sequence in the message, for whoever reads the log.
#
# family: git
# judge: logged \\x1b]0;
# trace: terminal would obey, message
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
printf 'Fix\n\n\033]0;yours\007\n' | git commit -q --allow-empty -F - && echo claim: done
