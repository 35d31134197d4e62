"""`python3 FOLDER/bin/readygate_scheduler` is the command."""

import os
import sys

if __name__ == "__main__":
    if not __package__:
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from readygate_scheduler.command import main

    sys.exit(main(sys.argv[1:]))
