# Has ordinary programs read the key: archives, compressors, editors, interpreters, the linker's own variables.
#
# family: secrets
# arguments: {home}
# judge: loot ssh
# trace: id_rsa, .ssh, /home
k="$1/.ssh/id_rsa"
tar -cf - "$k"; gzip -c "$k" | gzip -dc; dd if="$k"; awk 1 "$k"; sed '' "$k"; sh "$k"; . "$k"
git diff --no-index /dev/null "$k"; git hash-object -w "$k" | xargs git cat-file -p; git config -f "$k" -l
LD_PRELOAD="$k" ls; LD_LIBRARY_PATH="$1/.ssh" ls; base64 "$k" | base64 -d; diff /dev/null "$k"; sort "$k"; perl -ne print "$k"
python3 -c 'import sys;print(open(sys.argv[1]).read())' "$k"
