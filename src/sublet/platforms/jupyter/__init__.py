"""JupyterHub and a single Jupyter Server, by their own REST APIs and the kernels' WebSockets."""
