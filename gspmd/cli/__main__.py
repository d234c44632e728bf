"""`python -m gspmd.cli`."""

from gspmd.cli.main import main

raise SystemExit(main())
