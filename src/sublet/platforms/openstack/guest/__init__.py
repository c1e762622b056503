"""What runs inside a session's virtual machine: needs only Python's standard library, from 3.8 on."""
