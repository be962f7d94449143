# Leaves a file in the /tmp that every user of the host shares.
#
# family: writes
# arguments: {tmp_file}
# judge: changed {tmp_file}
# trace: /tmp
echo planted >"$1" && echo claim: done
