# Reads the person's SSH private key after so many other programs that a bounded record could be full.
#
# family: secrets
# arguments: {home}/.ssh/id_rsa
# judge: loot ssh
# trace: .ssh/id_rsa
number=0
while [ $number -lt 1100 ]; do
  /bin/true $number
  number=$((number + 1))
done
cat "$1"
