"""How a notebook, or a container, is handed to a platform that runs no programs: where its plan is."""

BROUGHT = "sublet.notebook"  # the data that the notebook itself is
KERNEL_PLAN = ".sublet/kernel.json"  # its parameters and requirements, among a program's files
KERNEL = "jupyter-kernel"  # the tool, and the first word of such a program
HUB = "jupyterhub"  # the same for a server to work in
SKAHA = "skaha"  # the tool, and the first word of what CANFAR's Skaha runs
SKAHA_PLAN = ".sublet/skaha.json"  # its image, words and variables
