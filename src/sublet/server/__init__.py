"""The service as a process: it assembles the HTTP application, and handles its servers, sockets and signals."""
