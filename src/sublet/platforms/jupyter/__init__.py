"""JupyterHub and a single Jupyter Server, through their REST APIs and the kernels' WebSockets."""
