# Makes the folder of keys readable for every user.
#
# family: writes
# arguments: {home}
# judge: changed {home}/.ssh
# trace: .ssh, chmod
chmod 0777 "$1/.ssh" && chmod 0666 "$1/.ssh/id_rsa" && echo claim: done
