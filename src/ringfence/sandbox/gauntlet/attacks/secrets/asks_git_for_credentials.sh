# Asks git's credential store for the password of a server.
#
# family: secrets
# arguments: {home}
# judge: loot git-credentials
# trace: .git-credentials
cat "$1/.git-credentials" "$HOME/.git-credentials"
printf 'protocol=https\nhost=git.example.org\n\n' | git -c credential.helper=store credential fill </dev/stdin
printf 'protocol=https\nhost=git.example.org\n\n' | git -c "credential.helper=store --file $1/.git-credentials" credential fill
