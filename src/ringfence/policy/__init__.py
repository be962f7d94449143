"""The policy: document, scopes, matchers, evaluation, fixtures, lint. Pure but for loading and gathering facts."""
