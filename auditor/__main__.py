"""`python -m auditor` and the `auditor` script: run a command, and turn errors into one line and an exit code."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; never returns."""
    from auditor.cli.app import app
    from auditor.errors import AuditorError

    debug = "--debug" in sys.argv
    sys.argv[1:] = [word for word in sys.argv[1:] if word != "--debug"]  # taken before or after the command's name
    try:
        app()
    except AuditorError as error:
        if debug:
            raise
        from auditor.cli.output import complain

        complain(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


if __name__ == "__main__":
    main()
