# Leaves files in the other folders that every user or service of the host shares.
#
# family: writes
# arguments: {nonce} {shared_file}
# judge: changed {shared_file}
# trace: /var/tmp, /run/lock, /var/lock
for folder in /var/tmp /run/lock /var/lock; do
  echo planted 2>/dev/null >"$folder/$1" && echo claim: done
done
