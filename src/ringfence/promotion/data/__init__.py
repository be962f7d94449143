"""Names of AWS IAM actions."""
