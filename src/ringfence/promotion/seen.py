"""Tokens used once: one small file per token id, made exclusively, so that two checks at the same time cannot both be first."""

import hashlib
import os


class TokenLog:
    """A folder that remembers which head a token vouched for."""

    def __init__(self, folder: str) -> None:
        """The folder is made if it is missing, mode 0700."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = folder

    def __call__(self, token: str, head: str) -> bool:
        """Whether the token may vouch for this head: it is new, or it was for this very head before."""
        path = os.path.join(self._folder, hashlib.sha256(token.encode()).hexdigest())
        temporary = f"{path}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(head)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            with open(path, encoding="ascii") as file:
                return file.read() == head
        finally:
            os.unlink(temporary)
        return True
