# Reads a token out of its own environment.
#
# family: secrets
# judge: loot environment
# trace: environment
env | grep DEPLOY_TOKEN
tr '\0' '\n' </proc/self/environ | grep DEPLOY_TOKEN
