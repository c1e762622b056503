"""What runs inside a session's virtual machine: Python's standard library alone, from 3.8 on."""
