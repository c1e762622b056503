"""The service as a process: its HTTP application, put together, and the servers, sockets and signals around it."""
