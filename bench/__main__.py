"""``python -m bench [NAME…]``: run the benchmarks named, or all of them; each prints its own table."""

import importlib
import pathlib
import sys


def main() -> int:
    folder = pathlib.Path(__file__).parent
    known = sorted(
        path.stem if path.is_file() else path.name
        for path in folder.iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("_")) or (path / "__main__.py").is_file()
    )
    names = sys.argv[1:] or [name for name in known if hasattr(importlib.import_module(f"bench.{name}"), "main")]
    for name in names:
        if name not in known:
            print(f"there is no benchmark {name}; known: {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"== {name}", flush=True)
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
