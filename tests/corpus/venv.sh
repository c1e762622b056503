#!/bin/sh
here=$(ls -d venv/bin bin 2>/dev/null | head -n 1)
chmod +x "$here/python3"
"$here/python3" -c 'import tool; print(tool.WORD)'
